//! Stores that lag: commits reach the medium some time later, and a power loss takes the store back to the last one that did.

use crate::areas::{CACHE, SETTLED};
use crate::record::{flag, HEADER};
use crate::region::{Region, SyncError};
use crate::store::Store;
use crate::word::{seal, unseal};

impl<R: Region> Store<'_, R> {
    /// The last commit that no power loss takes back; of a store that does not lag, the last one.
    #[inline]
    pub fn settled(&self) -> u64 {
        if self.superblock.params.lags {
            self.settled
        } else {
            self.seq
        }
    }

    /// Has all commits on the medium, without a new one.
    ///
    /// # Errors
    /// The first sync that failed; it may be tried again.
    pub fn settle(&mut self) -> Result<(), SyncError> {
        if self.settled() == self.seq {
            return Ok(());
        }
        let (ring, from) = (self.superblock.areas.ring.off, self.unsettled_ring);
        let (first, end) = self.unsettled_frames;
        if self.syncs() {
            if first < end {
                self.region.sync_pages_of(first, end - first)?;
            }
            self.region.sync_pages_of(ring + from, self.ring_used - from)?;
        }
        self.region.publish(SETTLED, seal(self.seq));
        if self.syncs() {
            self.region.sync_pages_of(SETTLED, 8)?;
        }
        self.all_settled();
        Ok(())
    }

    /// What was published is on the medium.
    #[inline]
    pub(crate) fn all_settled(&mut self) {
        (self.settled, self.unsettled_ring, self.unsettled_frames) = (self.seq, self.ring_used, (0, 0));
    }

    /// Of a store that was just loaded nobody knows which frames are on the medium.
    pub(crate) fn count_as_unsettled(&mut self) {
        let base = self.superblock.areas.base;
        (self.unsettled_ring, self.unsettled_frames) = (0, (base.off, base.off + base.len));
    }

    /// Is what was not synced gone?
    pub(crate) fn power_was_lost(&self) -> bool {
        let cache = self.region.cache();
        self.superblock.params.lags && (cache == 0 || self.region.load(CACHE) != cache)
    }

    /// The last commit, of those behind the base that is loaded, that is on the medium for sure.
    pub(crate) fn last_settled(&self) -> u64 {
        let word = unseal(self.region.load(SETTLED));
        let (mut seq, mut used, mut settled) = (self.seq, self.ring_used, self.seq);
        while let Some(header) = self.next_record(used, seq + 1) {
            seq = header.seq;
            used = (used + HEADER + header.len).next_multiple_of(HEADER);
            if header.flags & flag::SETTLES != 0 || word == Some(seq) {
                settled = seq;
            }
        }
        settled
    }
}

/// The shortest range that holds both; an empty one does not count.
#[inline]
pub(crate) fn union(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    match (a.0 < a.1, b.0 < b.1) {
        (true, true) => (a.0.min(b.0), a.1.max(b.1)),
        (true, false) => a,
        _ => b,
    }
}
