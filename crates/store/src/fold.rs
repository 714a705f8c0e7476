//! Folding: the ring's content goes into the base, and the ring starts again.
//!
//! Nothing that the head in force refers to is changed, except frames that the ring overwrites anyway; so a fold that is
//! cut short is simply done again by the next [`Store::open`].

use crate::areas::{FOLDING, HEADS, PAGE};
use crate::bitmap::{each_run, is_set, set};
use crate::chunk_table;
use crate::error::StoreError;
use crate::head::Head;
use crate::index::{page_of, STALE, TOUCHED};
use crate::record::Entry;
use crate::region::Region;
use crate::ring::Entries;
use crate::store::Store;
use crate::word::seal;

/// Bytes of a line.
pub(crate) const LINE: u64 = 64;

/// Calls `f(where its bytes lie, its offset in the page)` for every line of a `LINES` entry.
pub(crate) fn each_line(mask: u64, at: u64, mut f: impl FnMut(u64, u64)) {
    let (mut rest, mut from) = (mask, at);
    while rest != 0 {
        f(from, rest.trailing_zeros() as u64 * LINE);
        from += LINE;
        rest &= rest - 1;
    }
}

impl<R: Region> Store<'_, R> {
    /// Folds all published commits into the base. Afterwards every absent page's frame reads as zero.
    ///
    /// # Errors
    /// `InTransaction`, `ReadOnly`, `Damaged`; `Sync`, after which it may be tried again; commits are
    /// refused until it succeeds, if the new head may be on the medium. The published state is intact.
    pub fn fold(&mut self) -> Result<(), StoreError> {
        if self.transaction.open {
            return Err(StoreError::InTransaction);
        }
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        let durable = self.superblock.params.durable;
        self.settle()?;
        self.mark_begin()?;
        self.apply()?;
        self.discard_absent();
        let head = self.write_base();
        self.region.barrier();
        if durable {
            if let Err(error) = self.region.sync(0, self.superblock.total_len) {
                // The kernel forgets what it failed to write: all of the table is written again next time.
                (0..self.chunks.used()).for_each(|index| self.chunks.state_mut(index).flags |= STALE[head.slot()]);
                return Err(error.into());
            }
        }
        head.write(&mut self.region, self.cpu, self.seed);
        self.region.barrier();
        if durable {
            // Which head is in force after a power loss is unknown until this succeeds.
            self.head_unsure = self.region.sync(HEADS[head.slot()], PAGE).err();
            self.head_unsure.map_or(Ok(()), Err)?;
        }
        self.begin_epoch(head);
        Ok(())
    }

    /// From now on frames change: a record that turns out unreadable cannot be done without any more.
    fn mark_begin(&mut self) -> Result<(), StoreError> {
        let epoch = self.head.epoch;
        #[cfg(test)]
        let epoch = if self.mutant.wrong_mark { 0 } else { epoch };
        self.region.publish(FOLDING, seal(epoch));
        if self.superblock.params.durable {
            self.region.sync_pages_of(FOLDING, 8)?;
        }
        Ok(())
    }

    /// Overwrites frames with what the ring holds for pages that are present in the end.
    fn apply(&mut self) -> Result<(), StoreError> {
        let mut entries = Entries::of_records(self.superblock.areas.ring, self.ring_used);
        loop {
            match entries.next(&self.region) {
                Ok(Some(Entry::Page { addr, index, at })) => {
                    if let Some(frame) = self.present_frame(addr, index) {
                        let folded = &mut self.chunks.state_mut(index).folded;
                        match is_set(folded, page_of(addr)) {
                            true => self.region.copy(at, frame, PAGE),
                            false => self.region.copy_page(at, frame),
                        }
                        set(folded, page_of(addr));
                    }
                }
                Ok(Some(Entry::Lines { addr, index, mask, at })) => {
                    if let Some(frame) = self.present_frame(addr, index) {
                        each_line(mask, at, |from, line| self.region.copy(from, frame + line, LINE));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.damaged = true;
                    return Err(error);
                }
            }
        }
    }

    /// The frame of a page that is present.
    fn present_frame(&self, addr: u64, index: u32) -> Option<u64> {
        let known = index < self.chunks.used() && is_set(&self.chunks.state(index).live, page_of(addr));
        known.then(|| self.superblock.areas.frame(index, page_of(addr)))
    }

    /// Gives back the frames of pages that were dropped.
    fn discard_absent(&mut self) {
        for index in 0..self.chunks.used() {
            let state = self.chunks.state(index);
            let mut gone = state.busy;
            gone.iter_mut().zip(state.live).for_each(|(gone, live)| *gone &= !live);
            let (areas, region) = (&self.superblock.areas, &mut self.region);
            each_run(&gone, |first, count| region.discard(areas.frame(index, first), count as u64 * PAGE));
        }
    }

    /// Writes the chunk table and the object snapshot that belong to the next head; returns that head.
    fn write_base(&mut self) -> Head {
        let mut head = Head::first(self.seq, self.seed);
        (head.epoch, head.group_seq) = (self.head.epoch + 1, self.group_seq);
        let (areas, slot) = (self.superblock.areas, head.slot());
        let checks = (self.cpu, self.seed);
        chunk_table::write(&mut self.region, &areas, slot, &mut self.chunks, checks);
        let snapshot = areas.snapshots[slot].off;
        self.objects.write_snapshot(&mut self.region, snapshot);
        head.chunks = self.chunks.used();
        head.objects = self.objects.count() as u32;
        head.snapshot_len = self.objects.snapshot_len();
        head.snapshot_crc = self.region.checksum(self.cpu, self.seed, snapshot, head.snapshot_len);
        head
    }

    /// The new head is in force: the ring is empty, and every present page is needed as it is in its frame.
    fn begin_epoch(&mut self, head: Head) {
        let areas = self.superblock.areas;
        self.objects.move_to_snapshot(areas.snapshots[head.slot()].off);
        for index in 0..self.chunks.used() {
            let state = self.chunks.state_mut(index);
            state.busy = state.live;
            state.logged = [0; 8];
            state.flags &= !TOUCHED;
        }
        self.chunks.collect_free();
        self.touched = 0;
        self.head = head;
        self.folds += 1;
        self.ring_resident = self.ring_resident.max(self.ring_used.next_multiple_of(PAGE));
        let kept = 2 * self.superblock.params.ring_len;
        if self.ring_resident > kept && !self.keeps_ring {
            self.region.discard(areas.ring.off + kept, self.ring_resident - kept);
            self.ring_resident = kept;
            self.ring_ready = self.ring_ready.min(kept);
        }
        self.ring_used = 0;
        self.all_settled();
    }
}
