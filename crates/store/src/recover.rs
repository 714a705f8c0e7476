//! Opening a store that somebody died over. Everything read here is untrusted.

use crate::areas::{ADDRESS_END, CACHE, CHUNK, COMMITTED, FOLDING, JOURNAL_RUN, OPENINGS, PAGE, TOUCHED_ENTRY};
use crate::bitmap::each_run;
use crate::chunk_table;
use crate::cpu::Cpu;
use crate::error::{OpenError, StoreError};
use crate::head::{Head, Other, MAX_SEQ};
use crate::objects::Object;
use crate::page::touched_entry;
use crate::record::{Header, HEADER};
use crate::region::Region;
use crate::scratch::{Scratch, SCRATCH_LEN};
use crate::store::Store;
use crate::superblock::Superblock;
use crate::word::{seal, unseal};
use bytemuck::{bytes_of_mut, Zeroable};
use core::mem::size_of;

/// What opening a store found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The commit whose state this is.
    pub seq: u64,
    /// Commits taken from the ring.
    pub replayed: u64,
    /// Published commits after `seq` that can no longer be read: the state is older than the last published one.
    pub lost: u64,
    /// The newer head was torn or damaged, and the state was put together from the older one. After a death in the middle
    /// of a fold this is as it should be.
    pub older_head: bool,
    /// One of the words beside the heads was damaged. The state is that of the last complete record; the journal may have
    /// been lost.
    pub damaged_word: bool,
    /// Of a store that lags: power was lost since it was written to. Published commits after `seq` and the journal are gone.
    pub power_lost: bool,
}

impl<'s, R: Region> Store<'s, R> {
    /// Opens the store in `region` with the last published state, folded: no commit is left in the ring, and absent pages'
    /// frames read as zero. May be cut short at any point and done again.
    /// `scratch` is working memory of at most [`crate::SCRATCH_LEN`] bytes.
    ///
    /// # Errors
    /// Any [`OpenError`]; the region is then as it was, except for `Sync`.
    pub fn open(region: R, scratch: &'s mut [u8]) -> Result<(Store<'s, R>, Recovered), OpenError> {
        Store::open_with(region, (0, ADDRESS_END), scratch)
    }

    /// The same, but all pages outside of `start..end` are absent: for a copy to which no frames of theirs were copied.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(
        region: R,
        (start, end): (u64, u64),
        scratch: &'s mut [u8],
    ) -> Result<(Store<'s, R>, Recovered), OpenError> {
        let (mut store, recovered) = Store::load(region, scratch)?;
        store.chunks.drop_range(0, start);
        store.chunks.drop_range(end, ADDRESS_END);
        if store.superblock.params.durable {
            // The head and the records found may be in the kernel's cache only: they must not be lost once what they
            // replace is given up.
            store.region.sync_pages_of(0, store.ring_start())?;
        }
        // What is given up next the state settled before may need.
        store.settle()?;
        store.openings = store.openings.wrapping_add(1);
        store.region.publish(OPENINGS, store.openings);
        store.discard_leftovers(recovered);
        store.region.publish(COMMITTED, seal(store.seq));
        store.region.publish(JOURNAL_RUN, seal(store.journal.run));
        if store.superblock.params.lags {
            // Not before what says how far the state goes: whoever finds this word believes that one.
            store.region.publish(CACHE, store.region.cache());
        }
        store.fold().map_err(|error| match error {
            StoreError::Sync(error) => OpenError::Sync(error),
            _ => OpenError::Damaged("its commit records changed while they were read"),
        })?;
        // Records of epochs to come, should somebody have forged some, must not count once their epoch is reached.
        store.region.write(store.superblock.areas.ring.off, &[0; HEADER as usize]);
        Ok((store, recovered))
    }

    /// Looks at the last published state and changes nothing. The store is for reading; its ring need not be empty.
    /// If somebody is writing to the region at the same time, what is read counts only if [`Store::still_holds`] afterwards.
    ///
    /// # Errors
    /// Any [`OpenError`] but `Sync`. If somebody is writing to the region at the same time, also `Damaged`.
    pub fn peek(region: R, scratch: &'s mut [u8]) -> Result<(Store<'s, R>, Recovered), OpenError> {
        let (mut store, recovered) = Store::load(region, scratch)?;
        store.read_only = true;
        Ok((store, recovered))
    }

    fn load(region: R, scratch: &'s mut [u8]) -> Result<(Store<'s, R>, Recovered), OpenError> {
        let superblock = Superblock::read(&region)?;
        let (found, needed) = (scratch.len() as u64, Scratch::needed(&superblock.areas));
        let scratch = Scratch::divide(scratch, &superblock.areas).ok_or(OpenError::Scratch { found, needed })?;
        let openings = region.load(OPENINGS);
        let cpu = Cpu::detect();
        let (newest, other) = Head::choose(&region, cpu, superblock.seed(cpu))
            .ok_or(OpenError::Damaged("neither of its heads passes its checksum"))?;
        let mut store = Store::assemble(region, superblock, cpu, newest, scratch);
        store.openings = openings;
        let surely_newest = match other {
            Other::Older(_) => true,
            Other::Blank => newest.epoch == 1,
            Other::Invalid => false,
        };
        let mut recovered = match (store.rebuild(newest, surely_newest), other) {
            (Err(error @ OpenError::Damaged(_)), Other::Older(older)) => {
                store.rebuild(older, false).map_err(|_| error)?
            }
            (result, _) => result?,
        };
        store.count_as_unsettled();
        recovered.damaged_word |= !store.load_journal();
        if recovered.power_lost {
            store.journal.forget();
        }
        Ok((store, recovered))
    }

    /// Puts the state together from `head` and the ring.
    fn rebuild(&mut self, head: Head, surely_newest: bool) -> Result<Recovered, OpenError> {
        self.load_base(head)?;
        // Looked at once: who only peeks may see more published meanwhile.
        let word = unseal(self.region.load(COMMITTED));
        let last = self.last_countable(word);
        self.replay(last).map_err(|error| match error {
            StoreError::NoRoom(_) => self.too_many_objects(),
            _ => OpenError::Damaged("a commit record contradicts its base"),
        })?;
        let reached = self.seq;
        let power_lost = self.power_was_lost();
        let committed = if power_lost { reached } else { word.unwrap_or(reached) };
        let durable = self.superblock.params.durable;
        if committed < head.fold_seq && !durable {
            return Err(OpenError::Damaged("its last published commit lies before its base"));
        }
        let lost = committed.saturating_sub(reached);
        if lost > self.superblock.areas.ring.len / HEADER {
            return Err(OpenError::Damaged("its last published commit lies beyond its ring"));
        }
        if !surely_newest && (lost > 0 || word.is_none() || self.ring_is_newer()) {
            return Err(OpenError::Damaged("its newest head is unreadable, and the older one's state is gone"));
        }
        let folding = unseal(self.region.load(FOLDING)).is_none_or(|epoch| epoch == head.epoch);
        if lost > 0 && folding {
            return Err(OpenError::Damaged("a commit record is unreadable that was being folded into the base"));
        }
        // Numbers of lost commits are not used again.
        self.seq = reached.max(committed);
        if self.seq.max(head.epoch) >= MAX_SEQ - 1 {
            return Err(OpenError::Damaged("its sequence numbers are used up"));
        }
        Ok(Recovered {
            seq: reached,
            replayed: reached - head.fold_seq,
            lost,
            older_head: !surely_newest,
            damaged_word: word.is_none(),
            power_lost,
        })
    }

    /// Fills the index with the state of `head` alone.
    pub(crate) fn load_base(&mut self, head: Head) -> Result<(), OpenError> {
        let areas = self.superblock.areas;
        self.chunks.clear();
        self.objects.clear();
        (self.head, self.seq, self.group_seq, self.ring_used) = (head, head.fold_seq, head.group_seq, 0);
        self.settled = head.fold_seq;
        let checks = (self.cpu, self.seed);
        if !chunk_table::read(&self.region, &areas, head.slot(), head.chunks, &mut self.chunks, checks) {
            return Err(OpenError::Damaged("its chunk table fails its checksum"));
        }
        let snapshot = areas.snapshots[head.slot()];
        let right = head.snapshot_len <= snapshot.len
            && head.snapshot_crc == self.region.checksum(self.cpu, self.seed, snapshot.off, head.snapshot_len);
        if !right {
            return Err(OpenError::Damaged("its object snapshot fails its checksum"));
        }
        match self.objects.read_snapshot(&self.region, snapshot.off, head.snapshot_len, head.objects) {
            Some(true) => Ok(()),
            Some(false) => Err(self.too_many_objects()),
            None => Err(OpenError::Damaged("its object snapshot is malformed")),
        }
    }

    fn too_many_objects(&self) -> OpenError {
        let found = Scratch::needed(&self.superblock.areas) + self.objects.count() as u64 * size_of::<Object>() as u64;
        OpenError::Scratch { found, needed: SCRATCH_LEN }
    }

    /// Whether the ring begins with a record of a later epoch: the head it builds on existed.
    fn ring_is_newer(&self) -> bool {
        let ring = self.superblock.areas.ring;
        let mut header = Header::zeroed();
        self.region.read(ring.off, bytes_of_mut(&mut header));
        header.epoch > self.head.epoch
            && header.len <= ring.len - HEADER
            && header.crc == self.record_checksum(&header, ring.off + HEADER)
    }

    /// Empties frames that hold pages of commits that never were: absent pages must read as zero.
    fn discard_leftovers(&mut self, recovered: Recovered) {
        let certain = recovered.lost == 0 && !recovered.older_head && !recovered.damaged_word;
        // Power loss does not preserve the order of writes, so the list of touched chunks may lack some.
        if self.superblock.params.durable || !certain || !self.discard_touched() {
            let areas = self.superblock.areas;
            (0..self.chunks.used()).for_each(|index| self.discard_absent_in(index));
            let (unused, end) = (areas.frame(self.chunks.used(), 0), areas.base.off + areas.base.len);
            if unused < end {
                self.region.discard(unused, end - unused);
            }
        }
    }

    /// Empties the absent frames of touched chunks. False if the list of them is damaged.
    fn discard_touched(&mut self) -> bool {
        let areas = self.superblock.areas;
        for n in 0..areas.chunks() as u64 {
            let entry = self.region.load(areas.touched.off + n * TOUCHED_ENTRY);
            let index = entry as u32 & 0xff_ffff;
            if entry != touched_entry(self.head.epoch, index) {
                return entry == 0 || unseal(entry).is_some();
            }
            if index >= areas.chunks() {
                return false;
            }
            self.discard_absent_in(index);
        }
        true
    }

    fn discard_absent_in(&mut self, index: u32) {
        let (areas, region) = (&self.superblock.areas, &mut self.region);
        if index >= self.chunks.used() {
            return region.discard(areas.frame(index, 0), CHUNK);
        }
        let absent = self.chunks.state(index).live.map(|word| !word);
        each_run(&absent, |first, count| region.discard(areas.frame(index, first), count as u64 * PAGE));
    }
}
