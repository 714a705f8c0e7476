//! Reading a store that a program is writing to.

use crate::block::{self, Sealing, Spot};
use crate::error::ArchiveError;
use crate::index::Object;
use crate::pages::{hash, Known, Pages, Pending};
use crate::place::Place;
use crate::room;
use outlast_store::{PlainFile, Region, Store, PAGE, SCRATCH_LEN};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How often a store is read again because it changed meanwhile. Each time only what changed since is stored.
const LOOKS: u32 = 12;
/// How long to wait where the store is just being folded.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes that are read at once.
const STRETCH: u64 = 256 << 10;
/// Bytes written between two looks at the room that is left.
const MUCH: u64 = 1 << 20;

/// The program's side of a copy.
pub trait Hold {
    /// Asks the engine to put off folding for some seconds.
    fn put_off(&self);
    /// It may fold again.
    fn release(&self);
    /// Whether the copy is to be given up.
    fn is_over(&self) -> bool;
}

/// Who writes to the store meanwhile.
pub enum Writer<'a> {
    Program(&'a dyn Hold),
    /// The program is dead.
    Nobody,
}

impl Writer<'_> {
    fn is_over(&self) -> bool {
        matches!(self, Self::Program(hold) if hold.is_over())
    }
}

/// The file of blocks that is being written.
pub struct Output<'a> {
    pub place: &'a Place,
    pub file: File,
    pub number: u64,
    /// How blocks are sealed, if they are.
    pub sealing: Option<Sealing<'a>>,
    pub end: u64,
    /// Bytes that it may take.
    pub most: u64,
    /// Where the room was looked at last.
    pub looked: u64,
}

/// What was read.
pub struct Copied {
    pub seq: u64,
    pub pages: Pages,
    pub objects: Vec<Object>,
}

/// What one look found.
enum Look {
    Whole(Copied),
    /// A fold came in between; these pages are stored, whether they belong together or not.
    Torn(Pages),
    /// The store is being folded.
    Folding,
}

impl Output<'_> {
    fn append(&mut self, pending: &mut Pending, into: &mut Pages) -> Result<(), ArchiveError> {
        if pending.pages.is_empty() {
            return Ok(());
        }
        if self.end >= self.looked + MUCH || self.end == 0 {
            self.looked = self.end;
            if !room::is_left(self.place.dir()) {
                return Err(ArchiveError::NoRoom);
            }
        }
        let spot = Spot { file: self.number, off: self.end };
        let len = block::append(&self.file, spot, &pending.bytes, self.sealing)?;
        self.end += len;
        if self.end > self.most {
            return Err(ArchiveError::OverBudget);
        }
        let pages = pending.pages.len() as u16;
        let known = |(first, (addr, hash)): (usize, (u64, u128))| Known {
            addr,
            hash,
            spot,
            len: len as u32,
            pages,
            first: first as u16,
        };
        into.0.extend(pending.pages.drain(..).enumerate().map(known));
        pending.bytes.clear();
        Ok(())
    }
}

/// Reads the state of one commit; pages that are `known` already are not stored again.
pub fn copy(
    store: BorrowedFd<'_>,
    writer: &Writer<'_>,
    known: &Pages,
    output: &mut Output<'_>,
) -> Result<Copied, ArchiveError> {
    let mut scratch = vec![0; SCRATCH_LEN as usize];
    let mut torn = None;
    for _ in 0..LOOKS {
        if let Writer::Program(hold) = writer {
            hold.put_off();
        }
        match look(store, writer, torn.as_ref().unwrap_or(known), output, &mut scratch)? {
            Look::Whole(copied) => return Ok(copied),
            Look::Torn(pages) => torn = Some(pages),
            Look::Folding => std::thread::sleep(PAUSE),
        }
    }
    Err(ArchiveError::Restless)
}

fn look(
    store: BorrowedFd<'_>,
    writer: &Writer<'_>,
    known: &Pages,
    output: &mut Output<'_>,
    scratch: &mut [u8],
) -> Result<Look, ArchiveError> {
    let region = PlainFile::new(store.try_clone_to_owned()?)?;
    let is_alone = matches!(writer, Writer::Nobody);
    let store = match Store::peek(region, scratch) {
        Ok((store, _)) if !is_alone && !store.still_holds() => return Ok(Look::Folding),
        Ok((store, recovered)) if recovered.lost == 0 => store,
        Err(error) if is_alone => return Err(ArchiveError::Store(error)),
        Ok(_) if is_alone => return Err(ArchiveError::Store(outlast_store::OpenError::Damaged("commits are lost"))),
        _ => return Ok(Look::Folding),
    };
    // Later pieces lie further on in the ring.
    let mut logged: BTreeMap<u64, u64> = BTreeMap::new();
    let read = store.each_logged(&mut |addr, at, off, len| {
        logged.extend((0..len).step_by(LINE as usize).map(|line| (addr + at + line, off + line)));
    });
    let mut runs = Vec::new();
    store.runs(0, u64::MAX, &mut |addr, off, len| runs.push((addr, off, len)));
    let mut walk = Walk { store: &store, logged, output, pages: Pages::default(), pending: Pending::default() };
    let mut find = known.cursor();
    for (addr, off, len) in runs {
        for at in (0..len).step_by(STRETCH as usize) {
            if writer.is_over() {
                return Err(ArchiveError::Cancelled);
            }
            walk.stretch(addr + at, off + at, (len - at).min(STRETCH), &mut find)?;
        }
    }
    walk.flush()?;
    let pages = walk.pages;
    let mut objects = Vec::new();
    store.objects(&mut |kind, key, len| objects.push(Object { kind, key, bytes: vec![0; len] }));
    for Object { kind, key, bytes } in &mut objects {
        store.object(*kind, *key, bytes);
    }
    if let Some(error) = store.region().error() {
        return Err(error.into());
    }
    match read.is_ok() && (is_alone || store.still_holds()) {
        true => Ok(Look::Whole(Copied { seq: store.seq(), pages, objects })),
        false => Ok(Look::Torn(pages)),
    }
}

/// Bytes of what the ring logs together.
const LINE: u64 = 64;

/// A walk over all pages.
struct Walk<'w, 'o> {
    store: &'w Store<'w, PlainFile>,
    /// Address of a line to where the ring holds it.
    logged: BTreeMap<u64, u64>,
    output: &'w mut Output<'o>,
    pages: Pages,
    pending: Pending,
}

impl Walk<'_, '_> {
    /// Pages in a row, which lie in frames in a row.
    fn stretch<'k>(
        &mut self,
        addr: u64,
        off: u64,
        len: u64,
        find: &mut impl FnMut(u64) -> Option<&'k Known>,
    ) -> Result<(), ArchiveError> {
        let mut bytes = vec![0; len as usize];
        self.store.region().read(off, &mut bytes);
        for (line, from) in self.logged.range(addr..addr + len) {
            let at = (line - addr) as usize;
            self.store.region().read(*from, &mut bytes[at..at + LINE as usize]);
        }
        for (n, page) in bytes.chunks_exact(PAGE as usize).enumerate() {
            let addr = addr + n as u64 * PAGE;
            let hash = hash(page);
            match find(addr).filter(|known| known.hash == hash) {
                Some(known) => {
                    self.flush()?;
                    self.pages.0.push(*known);
                }
                None => {
                    if !self.pending.takes(addr) {
                        self.flush()?;
                    }
                    self.pending.bytes.extend(page);
                    self.pending.pages.push((addr, hash));
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        self.output.append(&mut self.pending, &mut self.pages)
    }
}
