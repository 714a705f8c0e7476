//! Giving a transaction up.

use crate::areas::PAGE;
use crate::error::StoreError;
use crate::index::page_of;
use crate::record::{Entry, HEADER};
use crate::region::Region;
use crate::ring::Entries;
use crate::store::Store;

impl<R: Region> Store<'_, R> {
    /// Forgets the open transaction, if any: the state is the last published one again.
    ///
    /// # Errors
    /// `Damaged` if that cannot be read back. `Sync` if a durable store cannot make sure of it: after a power loss the
    /// transaction may turn out to be committed.
    pub fn abort(&mut self) -> Result<(), StoreError> {
        if !self.transaction.open || self.read_only {
            self.transaction.open = false;
            return Ok(());
        }
        self.transaction.open = false;
        let (areas, start) = (self.superblock.areas, self.ring_start());
        let (seq, group_seq, used, settled) = (self.seq, self.group_seq, self.ring_used, self.settled);
        if self.transaction.cursor > start + HEADER {
            let mut entries = Entries::of_body(areas.ring, start + HEADER, self.transaction.cursor);
            while let Ok(Some(entry)) = entries.next(&self.region) {
                if let Entry::NewPage { addr, index } = entry {
                    if index >= areas.chunks() {
                        break;
                    }
                    self.region.discard(areas.frame(index, page_of(addr)), PAGE);
                }
            }
        }
        if start + HEADER <= areas.ring.off + areas.ring.len {
            // The header that a failed commit may have left must not count.
            self.region.write(start, &[0; HEADER as usize]);
        }
        let durable = self.superblock.params.durable;
        let synced = if durable { self.region.sync_pages_of(start, HEADER) } else { Ok(()) };
        let rebuilt = self.load_base(self.head).is_ok() && self.replay(seq).is_ok() && self.seq == seq;
        self.chunks.list_free();
        self.damaged |= !rebuilt || self.ring_used != used;
        (self.seq, self.group_seq, self.ring_used, self.touched) = (seq, group_seq, used, 0);
        self.settled = settled;
        self.refusal().map_or(Ok(synced?), Err)
    }
}
