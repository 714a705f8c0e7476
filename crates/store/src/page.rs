//! Whole pages in a transaction: absent ones go straight to their frames, others into the ring.

use crate::areas::{CHUNK, PAGE, TOUCHED_ENTRY};
use crate::bitmap::{is_set, set};
use crate::error::{Area, StoreError};
use crate::index::{page_of, TOUCHED};
use crate::record::{is_page, kind, Tag, TAG};
use crate::region::Region;
use crate::store::Store;
use crate::word::seal;
use bytemuck::bytes_of;

/// In a durable store, as many absent pages of one transaction go into the ring before the rest are written to their
/// frames, which costs a sync of its own.
const DURABLE_PAGES_IN_RING: u32 = if cfg!(test) { 2 } else { 256 };

/// An entry of the list of touched chunks.
pub fn touched_entry(epoch: u64, index: u32) -> u64 {
    seal(epoch << 24 | index as u64)
}

impl<R: Region> Store<'_, R> {
    /// Stores a page. Absent pages are written to their frame, others into the ring. Errors wait for [`Store::commit`].
    #[inline]
    pub fn page(&mut self, addr: u64, bytes: &[u8; PAGE as usize]) {
        if let Err(error) = self.try_page(addr, bytes) {
            self.fail(error);
        }
    }

    fn try_page(&mut self, addr: u64, bytes: &[u8; PAGE as usize]) -> Result<(), StoreError> {
        if !is_page(addr) {
            return Err(StoreError::Misaligned);
        }
        let index = match self.chunks.locate(addr) {
            Some(index) => index,
            None => self.new_chunk(addr & !(CHUNK - 1))?,
        };
        let page = page_of(addr);
        let absent = !is_set(&self.chunks.state(index).busy, page);
        let durable = self.superblock.params.durable;
        if absent && !(durable && self.transaction.in_ring < DURABLE_PAGES_IN_RING) {
            self.append(kind::NEW_PAGE, 0, index, addr, &[])?;
            self.touch(index);
            let frame = self.superblock.areas.frame(index, page);
            self.region.write(frame, bytes);
            let (first, end) = self.transaction.direct;
            let first = if first == end { frame } else { first.min(frame) };
            self.transaction.direct = (first, end.max(frame + PAGE));
        } else {
            self.append(kind::PAGE, 0, index, addr, &[bytes])?;
            set(&mut self.chunks.state_mut(index).logged, page);
            self.transaction.in_ring += absent as u32;
        }
        let state = self.chunks.state_mut(index);
        set(&mut state.busy, page);
        state.make_live(page);
        Ok(())
    }

    fn new_chunk(&mut self, chunk: u64) -> Result<u32, StoreError> {
        // The entry first, its index after: what is not in the ring must not be in the index.
        let at = self.reserve(TAG)?;
        let Some(index) = self.chunks.allocate(chunk) else {
            self.transaction.cursor = at;
            return Err(StoreError::NoRoom(Area::Base));
        };
        let tag = Tag { kind: kind::NEW_CHUNK, detail: 0, count: index, word: chunk };
        self.region.write(at, bytes_of(&tag));
        Ok(index)
    }

    /// Lists the chunk as one whose absent frames may hold something, before that is so.
    fn touch(&mut self, index: u32) {
        let epoch = self.head.epoch;
        let state = self.chunks.state_mut(index);
        if state.flags & TOUCHED == 0 {
            state.flags |= TOUCHED;
            let at = self.superblock.areas.touched.off + self.touched * TOUCHED_ENTRY;
            self.touched += 1;
            self.region.publish(at, touched_entry(epoch, index));
        }
    }
}
