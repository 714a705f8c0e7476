//! Resources as a service sees them: in its memory the entries, and what the call under way changes of them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;

use displaydoc::Display;
use thiserror::Error;

use super::blocks::Blocks;
use super::entry::{decode, encode, load, place, seal, Entry, Pointer, ROOTS};
use super::recent::{self, Area};
use super::{set_word, word, Medium, BLOCK, DATA, ENTRIES, LAST_KEY, USED};
use crate::memory::Shared;

pub use super::entry::NAME;

/// Pointers of an index.
const SPAN: u64 = BLOCK as u64 / 8;
/// Bytes that a resource can have.
pub const LARGEST: u64 = ROOTS as u64 * SPAN * BLOCK as u64;

#[derive(Clone, Copy, Debug, Display, Error, PartialEq, Eq)]
pub enum ResourceError {
    /// there is no such resource (any more)
    Unknown,
    /// there is a resource with that key already
    Exists,
    /// what is kept of the resource is not what was written
    Damaged,
    /// the storage is full: remove resources, or make them shorter
    Full,
    /// a resource can have no more than 32 MiB
    TooLarge,
    /// the name of a resource can have no more than 360 bytes
    NameTooLong,
    /// one call can change no more than 8 resources
    TooMany,
}

impl ResourceError {
    pub fn errno(self) -> i32 {
        match self {
            Self::Unknown => libc::ESTALE,
            Self::Exists => libc::EEXIST,
            Self::Damaged => libc::EIO,
            Self::Full => libc::ENOSPC,
            Self::TooLarge => libc::EFBIG,
            Self::NameTooLong => libc::ENAMETOOLONG,
            Self::TooMany => libc::E2BIG,
        }
    }
}

type Result<T> = std::result::Result<T, ResourceError>;
type Index = [Pointer; SPAN as usize];

/// All resources of a service. What a call changes is kept when its reply is published, and otherwise has not been.
pub struct Resources<M = File, A = Arc<Shared<Area>>> {
    medium: M,
    /// What the table does not have yet: of how many calls, of which entries, and of which call last.
    recent: A,
    calls: usize,
    unwritten: Vec<usize>,
    last: u64,
    /// A call's changes take form here.
    form: Vec<u8>,
    loaded: bool,
    entries: Vec<Option<Entry>>,
    places: HashMap<u64, usize>,
    /// Of entries that are damaged; nothing else is put there.
    spoilt: HashSet<usize>,
    indexes: HashMap<u32, Arc<Index>>,
    blocks: Option<Blocks>,
    /// The call under way: entries as they were, blocks that it took, and those that it gives up.
    before: Vec<(usize, Option<Entry>)>,
    taken: Vec<u32>,
    given: Vec<u32>,
}

impl<M: Medium, A: Medium> Resources<M, A> {
    pub(crate) fn new(medium: M, recent: A) -> Self {
        Self {
            medium,
            recent,
            calls: 0,
            unwritten: Vec::new(),
            last: 0,
            form: Vec::new(),
            loaded: false,
            entries: Vec::new(),
            places: HashMap::new(),
            spoilt: HashSet::new(),
            indexes: HashMap::new(),
            blocks: None,
            before: Vec::new(),
            taken: Vec::new(),
            given: Vec::new(),
        }
    }

    /// Reads back what earlier instances left, once.
    pub(crate) fn load(&mut self) {
        if std::mem::replace(&mut self.loaded, true) {
            return;
        }
        let used = must(word(&self.medium, USED)).min(ENTRIES as u64) as usize;
        for number in 0..used {
            let entry = decode(&must(load(&self.medium, number)));
            if entry.is_err() {
                eprintln!("component: entry {number} of its storage is damaged: that resource is lost");
                self.spoilt.insert(number);
            }
            let entry = entry.unwrap_or(None);
            if let Some(entry) = &entry {
                self.places.insert(entry.key, number);
            }
            self.entries.push(entry);
        }
    }

    /// A key that no resource has had.
    pub fn fresh(&mut self) -> u64 {
        let key = must(word(&self.medium, LAST_KEY)) + 1;
        must(set_word(&self.medium, LAST_KEY, key));
        key
    }

    /// Key and name of each, in no order.
    pub fn all(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().flatten().map(|entry| (entry.key, entry.name.as_slice()))
    }

    pub fn length(&self, key: u64) -> Result<u64> {
        self.entry(key).map(|(_, entry)| entry.length)
    }

    pub fn create(&mut self, key: u64, name: &[u8]) -> Result<()> {
        if name.len() > NAME {
            return Err(ResourceError::NameTooLong);
        }
        if self.places.contains_key(&key) {
            return Err(ResourceError::Exists);
        }
        let free = |at: &usize| self.entries[*at].is_none() && !self.spoilt.contains(at);
        let number = (0..self.entries.len()).find(free).unwrap_or(self.entries.len());
        if number == ENTRIES {
            return Err(ResourceError::Full);
        }
        if number == self.entries.len() {
            self.entries.push(None);
        }
        let entry = Entry { key, length: 0, roots: [Pointer::default(); ROOTS], name: name.to_vec() };
        self.change(number, Some(entry))
    }

    pub fn rename(&mut self, key: u64, name: &[u8]) -> Result<()> {
        if name.len() > NAME {
            return Err(ResourceError::NameTooLong);
        }
        let (number, entry) = self.entry(key)?;
        let entry = Entry { name: name.to_vec(), ..entry.clone() };
        self.change(number, Some(entry))
    }

    pub fn remove(&mut self, key: u64) -> Result<()> {
        let (number, entry) = self.entry(key)?;
        let roots = entry.roots;
        self.change(number, None)?;
        for root in roots.into_iter().filter(|root| root.block != 0) {
            // One that is damaged says nothing of its blocks: they are free again for the next instance.
            if let Ok(index) = self.index(root) {
                self.given.extend(index.iter().map(|pointer| pointer.block));
            }
            self.given.push(root.block);
        }
        Ok(())
    }

    /// At most so many bytes from `offset` on; none behind the end.
    pub fn read(&mut self, key: u64, offset: u64, most: usize) -> Result<Vec<u8>> {
        let (_, entry) = self.entry(key)?;
        let (length, roots) = (entry.length, entry.roots);
        let end = length.min(offset.saturating_add(most as u64));
        let mut bytes = Vec::with_capacity(end.saturating_sub(offset) as usize);
        let mut at = offset;
        while at < end {
            let block = at / BLOCK as u64;
            let index = self.index(roots[(block / SPAN) as usize])?;
            let data = self.block(index[(block % SPAN) as usize])?;
            let start = block * BLOCK as u64;
            let stop = end.min(start + BLOCK as u64);
            bytes.extend_from_slice(&data[(at - start) as usize..(stop - start) as usize]);
            at = stop;
        }
        Ok(bytes)
    }

    /// All of the bytes or, with an error, none. What lies between the end and `offset` is zero.
    pub fn write(&mut self, key: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let (number, entry) = self.entry(key)?;
        let mut entry = entry.clone();
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= LARGEST);
        let end = end.ok_or(ResourceError::TooLarge)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (first, last) = (offset / BLOCK as u64, (end - 1) / BLOCK as u64);
        let needed = last - first + 1 + (last / SPAN - first / SPAN + 1);
        if u64::from(self.blocks().free()) < needed {
            return Err(ResourceError::Full);
        }
        self.changeable(number)?;
        let mut given = Vec::new();
        for root in first / SPAN..=last / SPAN {
            let at = root as usize;
            let mut index = *self.index(entry.roots[at])?;
            for block in first.max(root * SPAN)..=last.min(root * SPAN + SPAN - 1) {
                let pointer = &mut index[(block % SPAN) as usize];
                let start = block * BLOCK as u64;
                let (from, to) = (offset.max(start), end.min(start + BLOCK as u64));
                let whole = to - from == BLOCK as u64;
                let mut data = if whole { vec![0; BLOCK] } else { self.block(*pointer)? };
                data[(from - start) as usize..(to - start) as usize]
                    .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
                given.push(pointer.block);
                *pointer = self.put(&data)?;
            }
            given.push(entry.roots[at].block);
            entry.roots[at] = self.put_index(index)?;
        }
        entry.length = entry.length.max(end);
        self.given.append(&mut given);
        self.change(number, Some(entry))
    }

    /// Makes it so long; what is new is zero.
    pub fn truncate(&mut self, key: u64, length: u64) -> Result<()> {
        let (number, entry) = self.entry(key)?;
        let mut entry = entry.clone();
        if length > LARGEST {
            return Err(ResourceError::TooLarge);
        }
        self.changeable(number)?;
        // A block that is cut, and its index; or an index alone.
        if length < entry.length && self.blocks().free() < 2 {
            return Err(ResourceError::Full);
        }
        let mut given = Vec::new();
        for at in 0..if length < entry.length { ROOTS } else { 0 } {
            let (root, start) = (entry.roots[at], at as u64 * SPAN * BLOCK as u64);
            if root.block == 0 || start + SPAN * BLOCK as u64 <= length {
                continue;
            }
            let mut index = *self.index(root)?;
            let kept = length.saturating_sub(start);
            let whole = kept.div_ceil(BLOCK as u64) as usize;
            for pointer in &mut index[whole..] {
                given.push(std::mem::take(pointer).block);
            }
            let cut = (kept % BLOCK as u64) as usize;
            if cut != 0 && index[whole - 1].block != 0 {
                let mut data = self.block(index[whole - 1])?;
                data[cut..].fill(0);
                given.push(index[whole - 1].block);
                index[whole - 1] = self.put(&data)?;
            }
            given.push(root.block);
            entry.roots[at] = if kept == 0 { Pointer::default() } else { self.put_index(index)? };
        }
        entry.length = length;
        self.given.append(&mut given);
        self.change(number, Some(entry))
    }

    /// The call's reply is about to be published: its changes are there from now on, whatever becomes of this process, unless
    /// `apply` finds that it did not come to that.
    pub(crate) fn commit(&mut self, sequence: u64, at: u64) {
        if self.before.is_empty() {
            return;
        }
        if self.calls == recent::RECORDS {
            self.write_table();
        }
        let changed = self.before.iter().map(|(number, _)| (*number, self.entries[*number].as_ref()));
        must(recent::put(&self.recent, self.calls, sequence, at, changed, &mut self.form));
        self.calls += 1;
        self.last = sequence;
        for (number, _) in &self.before {
            if !self.unwritten.contains(number) {
                self.unwritten.push(*number);
            }
        }
        self.settle();
    }

    /// What all calls before this one did: these have their replies.
    fn write_table(&mut self) {
        for number in &self.unwritten {
            let before = self.before.iter().find(|(changed, _)| changed == number).map(|(_, before)| before);
            self.form.clear();
            encode(before.unwrap_or(&self.entries[*number]).as_ref(), &mut self.form);
            seal(&mut self.form);
            must(self.medium.write(place(*number), &self.form));
        }
        must(recent::finish(&self.medium, &self.recent, &self.unwritten, self.last));
        self.unwritten.clear();
        self.calls = 0;
    }

    /// The call's changes hold, as long as this process lives.
    pub(crate) fn settle(&mut self) {
        self.before.clear();
        self.taken.clear();
        for block in std::mem::take(&mut self.given) {
            self.let_go(block);
        }
    }

    /// The call has changed nothing.
    pub(crate) fn rollback(&mut self) {
        for (number, old) in std::mem::take(&mut self.before).into_iter().rev() {
            self.set(number, old);
        }
        self.given.clear();
        for block in std::mem::take(&mut self.taken) {
            self.let_go(block);
        }
    }

    fn let_go(&mut self, block: u32) {
        self.indexes.remove(&block);
        if let Some(blocks) = &mut self.blocks {
            blocks.give(block);
        }
    }

    fn entry(&self, key: u64) -> Result<(usize, &Entry)> {
        let is_it = |entry: &&Entry| entry.key == key;
        let found = self.places.get(&key).map(|number| (*number, self.entries[*number].as_ref().filter(is_it)));
        match found {
            Some((number, Some(entry))) => Ok((number, entry)),
            // One of the two tables says so, and the other may have been led astray: that is no answer for a client.
            _ => {
                let is_sound = found.is_none() && !self.entries.iter().flatten().any(|entry| entry.key == key);
                assert!(is_sound, "two tables contradict each other about a resource: this process is harmed");
                Err(ResourceError::Unknown)
            }
        }
    }

    fn changeable(&self, number: usize) -> Result<()> {
        let already = self.before.iter().any(|(changed, _)| *changed == number);
        match already || self.before.len() < recent::MOST {
            true => Ok(()),
            false => Err(ResourceError::TooMany),
        }
    }

    fn change(&mut self, number: usize, entry: Option<Entry>) -> Result<()> {
        self.changeable(number)?;
        if !self.before.iter().any(|(changed, _)| *changed == number) {
            self.before.push((number, self.entries[number].clone()));
        }
        self.set(number, entry);
        Ok(())
    }

    fn set(&mut self, number: usize, entry: Option<Entry>) {
        if let Some(old) = &self.entries[number] {
            self.places.remove(&old.key);
        }
        if let Some(new) = &entry {
            self.places.insert(new.key, number);
        }
        self.entries[number] = entry;
    }

    /// All that entries lead to is taken; found out when it is needed first.
    fn blocks(&mut self) -> &mut Blocks {
        if self.blocks.is_none() {
            let mut blocks = Blocks::new();
            let roots: Vec<Pointer> = self.entries.iter().flatten().flat_map(|entry| entry.roots).collect();
            for root in roots.into_iter().filter(|root| root.block != 0) {
                blocks.mark(root.block);
                if let Ok(index) = self.index(root) {
                    for pointer in index.iter().filter(|pointer| pointer.block != 0) {
                        blocks.mark(pointer.block);
                    }
                }
            }
            self.blocks = Some(blocks);
        }
        self.blocks.get_or_insert_with(Blocks::new)
    }

    fn index(&mut self, root: Pointer) -> Result<Arc<Index>> {
        if let Some(index) = self.indexes.get(&root.block) {
            return Ok(index.clone());
        }
        let bytes = self.block(root)?;
        let index: Arc<Index> = Arc::new(std::array::from_fn(|at| Pointer::from_bytes(&bytes[at * 8..at * 8 + 8])));
        if root.block != 0 {
            self.indexes.insert(root.block, index.clone());
        }
        Ok(index)
    }

    fn put_index(&mut self, index: Index) -> Result<Pointer> {
        let bytes: Vec<u8> = index.iter().flat_map(|pointer| pointer.to_bytes()).collect();
        let root = self.put(&bytes)?;
        self.indexes.insert(root.block, Arc::new(index));
        Ok(root)
    }

    fn block(&self, pointer: Pointer) -> Result<Vec<u8>> {
        let mut data = vec![0; BLOCK];
        if pointer.block == 0 {
            return Ok(data);
        }
        if pointer.block > super::BLOCKS {
            return Err(ResourceError::Damaged);
        }
        must(self.medium.read(DATA + u64::from(pointer.block) * BLOCK as u64, &mut data));
        match crc32fast::hash(&data) == pointer.check {
            true => Ok(data),
            false => Err(ResourceError::Damaged),
        }
    }

    fn put(&mut self, data: &[u8]) -> Result<Pointer> {
        let block = self.blocks().take().ok_or(ResourceError::Full)?;
        self.taken.push(block);
        must(self.medium.write(DATA + u64::from(block) * BLOCK as u64, data));
        Ok(Pointer { block, check: crc32fast::hash(data) })
    }
}

/// A component without its storage has failed: it ends, and what it was about to do has not happened.
fn must<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("cannot reach the storage of this component: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::sync::Arc;

    use super::{ResourceError, Resources};
    use crate::memory::Shared;
    use crate::storage::{create, recent};

    #[test]
    fn tables_that_contradict_each_other_are_no_answer() {
        let recent = Shared::<recent::Area>::create(c"test").expect("memory");
        let recent = Arc::new(Shared::map(recent.as_fd()).expect("a mapping"));
        let mut resources = Resources::new(std::fs::File::from(create().expect("a storage")), recent);
        resources.load();
        for key in [7, 8] {
            resources.create(key, b"").expect("room");
        }
        assert_eq!((resources.length(7), resources.length(9)), (Ok(0), Err(ResourceError::Unknown)));
        let asked = |resources: &Resources, key| catch_unwind(AssertUnwindSafe(|| resources.length(key)));
        // One went to another's place, one is gone; what never was still is not.
        resources.places.insert(7, 1);
        resources.places.remove(&8);
        assert!(asked(&resources, 7).is_err() && asked(&resources, 8).is_err());
        assert_eq!(asked(&resources, 9).ok(), Some(Err(ResourceError::Unknown)));
    }
}
