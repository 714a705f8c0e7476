//! Room for the next fold. Opening a store folds it, and must succeed also where the file system has become full since: what
//! a fold writes anew is given room before the commit that it folds.

use crate::areas::{HEADS, PAGE, TABLE_ENTRY};
use crate::error::{Area, StoreError};
use crate::region::Region;
use crate::store::Store;

/// More than what is needed now, so that room is asked for rarely.
const MORE_CHUNKS: u32 = 64;
const MORE_BYTES: u64 = 16 << 10;
/// Of the journal: recovery writes to it what it has undone.
const JOURNAL: u64 = 16 << 10;

/// What the areas of one head slot have room for.
#[derive(Clone, Copy, Default)]
pub struct Reserved {
    chunks: u32,
    snapshot: u64,
}

impl<R: Region> Store<'_, R> {
    /// Gives the next fold room.
    ///
    /// # Errors
    /// `NoRoom`.
    #[inline]
    pub(crate) fn reserve_fold(&mut self) -> Result<(), StoreError> {
        let reserved = &self.reserved[self.head.slot() ^ 1];
        match self.chunks.used() <= reserved.chunks && self.objects.snapshot_len() <= reserved.snapshot {
            true => Ok(()),
            false => self.reserve_more(),
        }
    }

    #[cold]
    fn reserve_more(&mut self) -> Result<(), StoreError> {
        let (areas, slot) = (self.superblock.areas, self.head.slot() ^ 1);
        let chunks = (self.chunks.used() + MORE_CHUNKS).min(areas.chunks());
        let snapshot = (self.objects.snapshot_len() + MORE_BYTES).min(areas.snapshots[slot].len);
        let wanted = [
            (HEADS[slot], PAGE),
            (areas.tables[slot].off, chunks as u64 * TABLE_ENTRY),
            (areas.snapshots[slot].off, snapshot),
            (areas.journal.off, JOURNAL.min(areas.journal.len)),
        ];
        if !wanted.into_iter().all(|(off, len)| self.region.reserve(off, len)) {
            return Err(StoreError::NoRoom(Area::Base));
        }
        self.reserved[slot] = Reserved { chunks, snapshot };
        Ok(())
    }
}
