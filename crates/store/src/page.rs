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

    /// Stores pages in a row, as [`Store::page`] does. `bytes` are whole ones.
    pub fn pages(&mut self, addr: u64, bytes: &[u8]) {
        if let Err(error) = self.try_pages(addr, bytes) {
            self.fail(error);
        }
    }

    fn try_pages(&mut self, mut addr: u64, mut bytes: &[u8]) -> Result<(), StoreError> {
        if !is_page(addr) || bytes.len() as u64 % PAGE != 0 {
            return Err(StoreError::Misaligned);
        }
        while let Some(page) = bytes.first_chunk() {
            let most = (bytes.len() as u64 / PAGE).min((CHUNK - addr % CHUNK) / PAGE) as u32;
            let stored = match self.absent_from(addr, most)? {
                0 => {
                    self.try_page(addr, page)?;
                    PAGE
                }
                absent => {
                    self.write_directly(addr, &bytes[..absent as usize * page.len()])?;
                    absent as u64 * PAGE
                }
            };
            addr += stored;
            bytes = &bytes[stored as usize..];
        }
        Ok(())
    }

    /// How many pages from `addr` on go straight to their frames; at most as many as are left of the chunk.
    fn absent_from(&mut self, addr: u64, most: u32) -> Result<u32, StoreError> {
        if self.superblock.params.durable {
            return Ok(0);
        }
        let index = self.chunk_of(addr)?;
        let busy = &self.chunks.state(index).busy;
        let first = page_of(addr);
        Ok((first..first + most).take_while(|&page| !is_set(busy, page)).count() as u32)
    }

    /// Absent pages of one chunk go to their frames, all at once. Not by way of a mapping: a frame that nobody looks at need not be
    /// mapped, and the kernel need not clear it first, nor take the mapping down at the process's death.
    fn write_directly(&mut self, addr: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let (index, first, count) = (self.chunk_of(addr)?, page_of(addr), (bytes.len() as u64 / PAGE) as u32);
        for page in 0..count as u64 {
            self.append(kind::NEW_PAGE, 0, index, addr + page * PAGE, &[])?;
        }
        self.touch(index);
        let frame = self.superblock.areas.frame(index, first);
        self.region.write_pages(frame, bytes);
        self.note_direct(frame, bytes.len() as u64);
        let state = self.chunks.state_mut(index);
        for page in first..first + count {
            set(&mut state.busy, page);
            state.make_live(page);
        }
        Ok(())
    }

    fn note_direct(&mut self, frame: u64, len: u64) {
        let (first, end) = self.transaction.direct;
        let first = if first == end { frame } else { first.min(frame) };
        self.transaction.direct = (first, end.max(frame + len));
        self.transaction.written += len;
    }

    fn chunk_of(&mut self, addr: u64) -> Result<u32, StoreError> {
        match self.chunks.locate(addr) {
            Some(index) => Ok(index),
            None => self.new_chunk(addr & !(CHUNK - 1)),
        }
    }

    fn try_page(&mut self, addr: u64, bytes: &[u8; PAGE as usize]) -> Result<(), StoreError> {
        if !is_page(addr) {
            return Err(StoreError::Misaligned);
        }
        let index = self.chunk_of(addr)?;
        let page = page_of(addr);
        let absent = !is_set(&self.chunks.state(index).busy, page);
        let durable = self.superblock.params.durable;
        if absent && !(durable && self.transaction.in_ring < DURABLE_PAGES_IN_RING) {
            return self.write_directly(addr, bytes);
        }
        self.append(kind::PAGE, 0, index, addr, &[bytes])?;
        set(&mut self.chunks.state_mut(index).logged, page);
        self.transaction.in_ring += absent as u32;
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
