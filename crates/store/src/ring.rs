//! Reading records back.

use crate::areas::Span;
use crate::bitmap::{is_set, set};
use crate::error::{Area, StoreError};
use crate::index::{page_of, ChunkState};
use crate::record::{flag, read_entry, Entry, Header, HEADER, RECORD_MAGIC};
use crate::region::Region;
use crate::store::Store;
use crate::superblock::Params;
use bytemuck::{bytes_of_mut, Zeroable};

impl<R: Region> Store<'_, R> {
    /// The record that begins after the first `used` bytes of the ring, if it is valid and the next one: its header.
    pub(crate) fn next_record(&self, used: u64, seq: u64) -> Option<Header> {
        let ring = self.superblock.areas.ring;
        let room = ring.len.checked_sub(used)?.checked_sub(HEADER)?;
        let mut header = Header::zeroed();
        self.region.read(ring.off + used, bytes_of_mut(&mut header));
        let fits = header.len <= room && header.len % 8 == 0;
        let next = header.magic == RECORD_MAGIC && header.seq == seq;
        let body = ring.off + used + HEADER;
        let valid = fits
            && next
            && self.check_epoch(header.epoch)
            && self.check_crc(|| header.crc == self.record_checksum(&header, body));
        valid.then_some(header)
    }

    fn check_epoch(&self, epoch: u64) -> bool {
        #[cfg(test)]
        if self.mutant.ignore_epoch {
            return true;
        }
        epoch == self.head.epoch
    }

    fn check_crc(&self, right: impl Fn() -> bool) -> bool {
        #[cfg(test)]
        if self.mutant.ignore_crc {
            return true;
        }
        right()
    }

    /// Takes the records after the head's state into the index, as far as they are valid; changes nothing in the region.
    ///
    /// # Errors
    /// `Damaged` if a record with a right checksum holds nonsense, `NoRoom` if the working memory is too small.
    pub(crate) fn replay(&mut self, last: u64) -> Result<(), StoreError> {
        while self.seq < last {
            let Some(header) = self.next_record(self.ring_used, self.seq + 1) else { break };
            let mut at = self.ring_start() + HEADER;
            let end = at + header.len;
            while at < end {
                let (entry, next) = read_entry(&self.region, at, end).ok_or(StoreError::Damaged)?;
                self.note(entry)?;
                at = next;
            }
            self.seq = header.seq;
            if header.flags & flag::SETTLES != 0 {
                self.settled = header.seq;
            }
            self.group_seq = header.group_seq;
            self.ring_used = (self.ring_used + HEADER + header.len).next_multiple_of(HEADER);
        }
        Ok(())
    }

    /// The last record that may count: none beyond the published one, where publishing is what acknowledges. If the word
    /// that publishes is damaged, every complete record counts.
    pub(crate) fn last_countable(&self, published: Option<u64>) -> u64 {
        match self.superblock.params {
            Params { lags: true, .. } if self.power_was_lost() => self.last_settled(),
            // One that settles may be on the medium before it is published.
            Params { lags: true, .. } => published.unwrap_or(u64::MAX).max(self.last_settled()),
            Params { durable: true, lags: false, .. } => u64::MAX,
            _ => published.unwrap_or(u64::MAX),
        }
    }

    /// Takes an entry into the index.
    ///
    /// # Errors
    /// `Damaged` if it contradicts the state, `NoRoom` if the working memory is too small for it.
    fn note(&mut self, entry: Entry) -> Result<(), StoreError> {
        match entry {
            Entry::NewChunk { chunk, index } => return ensure(self.chunks.map(chunk, index)),
            Entry::NewPage { addr, index } => {
                let (state, page) = self.page_state(addr, index)?;
                set(&mut state.busy, page);
                state.make_live(page);
            }
            Entry::Page { addr, index, .. } => {
                let (state, page) = self.page_state(addr, index)?;
                set(&mut state.busy, page);
                set(&mut state.logged, page);
                state.make_live(page);
            }
            Entry::Lines { addr, index, .. } => {
                let (state, page) = self.page_state(addr, index)?;
                ensure(is_set(&state.live, page))?;
                set(&mut state.logged, page);
            }
            Entry::Drop { start, end } => self.chunks.drop_range(start, end),
            Entry::Put { kind, key, at, len } => {
                let place = self.objects.place(kind, key, len).ok_or(StoreError::NoRoom(Area::Objects))?;
                self.objects.put(place, at);
            }
            Entry::Delete { kind, key } => self.objects.delete(kind, key),
        }
        Ok(())
    }

    fn page_state(&mut self, addr: u64, index: u32) -> Result<(&mut ChunkState, u32), StoreError> {
        ensure(self.chunks.locate(addr) == Some(index))?;
        Ok((self.chunks.state_mut(index), page_of(addr)))
    }
}

fn ensure(consistent: bool) -> Result<(), StoreError> {
    consistent.then_some(()).ok_or(StoreError::Damaged)
}

/// Walks over the entries of records that were found valid before.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    ring: Span,
    /// Bytes of the ring taken by the records.
    taken: u64,
    /// Bytes of it that were begun.
    seen: u64,
    /// Region offsets: next entry, end of its record.
    at: u64,
    end: u64,
}

impl Entries {
    /// Of the records in the first `taken` bytes of the ring.
    pub fn of_records(ring: Span, taken: u64) -> Entries {
        Entries { ring, taken, seen: 0, at: 0, end: 0 }
    }

    /// Of the record without header whose entries lie in `at..end`.
    pub fn of_body(ring: Span, at: u64, end: u64) -> Entries {
        Entries { ring, taken: 0, seen: 0, at, end }
    }

    /// The next entry, oldest first.
    ///
    /// # Errors
    /// `Damaged` if the bytes are not those that were found valid.
    pub fn next<R: Region>(&mut self, region: &R) -> Result<Option<Entry>, StoreError> {
        while self.at == self.end {
            if self.seen >= self.taken {
                return Ok(None);
            }
            let mut header = Header::zeroed();
            region.read(self.ring.off + self.seen, bytes_of_mut(&mut header));
            let end = header.len.checked_add(self.seen + HEADER).filter(|end| *end <= self.taken);
            let end = end.ok_or(StoreError::Damaged)?;
            self.at = self.ring.off + self.seen + HEADER;
            self.end = self.ring.off + end;
            self.seen = end.next_multiple_of(HEADER);
        }
        let (entry, next) = read_entry(region, self.at, self.end).ok_or(StoreError::Damaged)?;
        self.at = next;
        Ok(Some(entry))
    }
}
