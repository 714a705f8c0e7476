//! Transactions: entries go straight into the ring, then the header, then the word that publishes them.

use crate::areas::{ADDRESS_END, COMMITTED, PAGE};
use crate::error::{Area, StoreError};
use crate::record::{flag, is_page, kind, Header, Tag, HEADER, RECORD_MAGIC, TAG};
use crate::region::Region;
use crate::settle::union;
use crate::store::Store;
use crate::word::seal;
use bytemuck::{bytes_of, Zeroable};

/// Bytes of the ring that are made ready to be written to beyond what is needed.
const LEAST_AHEAD: u64 = 32 << 10;
const MOST_AHEAD: u64 = 512 << 10;

/// The transaction that is open, if any.
#[derive(Clone, Copy, Default)]
pub struct Transaction {
    pub open: bool,
    /// Region offset of the next entry.
    pub cursor: u64,
    /// The first error; commit returns it.
    pub failed: Option<StoreError>,
    /// Absent pages that went into the ring.
    pub in_ring: u32,
    /// Range of frames written directly: first byte, end. Empty when equal.
    pub direct: (u64, u64),
    /// Bytes written to frames directly, and once it is committed those of the record.
    pub written: u64,
}

impl<R: Region> Store<'_, R> {
    /// Opens a transaction; goes on with the one that is open, if any.
    #[inline]
    pub fn begin(&mut self) {
        if !self.transaction.open {
            let (cursor, ring) = (self.ring_start() + HEADER, self.superblock.areas.ring);
            let full = (cursor > ring.off + ring.len).then_some(StoreError::NoRoom(Area::Ring));
            self.transaction = Transaction {
                open: true,
                cursor,
                failed: self.refusal().or(self.head_unsure.map(StoreError::from)).or(full),
                in_ring: 0,
                direct: (0, 0),
                written: 0,
            };
        }
    }

    /// The pages of `start..end` become absent: they read as zero. Errors wait for [`Store::commit`].
    #[inline]
    pub fn drop_range(&mut self, start: u64, end: u64) {
        let sound = is_page(start) && end % PAGE == 0 && start <= end && end <= ADDRESS_END;
        let done = match sound {
            true => self.append(kind::DROP, 0, 0, start, &[&end.to_le_bytes()]).map(|_| ()),
            false => Err(StoreError::Misaligned),
        };
        match done {
            Ok(()) => self.chunks.drop_range(start, end),
            Err(error) => self.fail(error),
        }
    }

    /// Stores an object. Errors wait for [`Store::commit`].
    #[inline]
    pub fn put(&mut self, kind: u16, key: u64, bytes: &[u8]) {
        self.put2(kind, key, bytes, &[]);
    }

    /// Stores an object made of two parts. Errors wait for [`Store::commit`].
    #[inline]
    pub fn put2(&mut self, kind: u16, key: u64, first: &[u8], second: &[u8]) {
        if let Err(error) = self.try_put(kind, key, first, second) {
            self.fail(error);
        }
    }

    /// Removes an object; there need not be one. Errors wait for [`Store::commit`].
    #[inline]
    pub fn delete(&mut self, kind: u16, key: u64) {
        match self.append(kind::DELETE, kind, 0, key, &[]) {
            Ok(_) => self.objects.delete(kind, key),
            Err(error) => self.fail(error),
        }
    }

    /// The commit group's sequence number, to be recorded with the commits from now on.
    pub fn set_group_seq(&mut self, group_seq: u64) {
        self.group_seq = group_seq;
    }

    /// Publishes the transaction and returns its sequence number. In a durable store it is on the medium then.
    ///
    /// # Errors
    /// The first error since [`Store::begin`], or that of a sync. The transaction stays open: [`Store::abort`] it.
    #[inline]
    pub fn commit(&mut self) -> Result<u64, StoreError> {
        self.publish(true)
    }

    /// The same, but in a store that lags a power loss may take it back, until one that follows is settled: then the state is that of
    /// the last one that was.
    ///
    /// # Errors
    /// As those of [`Store::commit`].
    #[inline]
    pub fn commit_unsettled(&mut self) -> Result<u64, StoreError> {
        self.publish(!self.superblock.params.lags)
    }

    #[inline]
    fn publish(&mut self, settles: bool) -> Result<u64, StoreError> {
        if !self.transaction.open {
            return Err(StoreError::NoTransaction);
        }
        if let Some(error) = self.transaction.failed {
            return Err(error);
        }
        if let Err(error) = self.reserve_fold() {
            self.fail(error);
            return Err(error);
        }
        let start = self.ring_start();
        let (body, syncs, lags) = (start + HEADER, settles && self.syncs(), self.superblock.params.lags);
        let len = self.transaction.cursor - body;
        let (first, end) = self.transaction.direct;
        let (first, end) = if lags { union(self.unsettled_frames, (first, end)) } else { (first, end) };
        if syncs && first < end {
            self.sync_or_fail(first, end - first)?;
        }
        let mut header = Header {
            magic: RECORD_MAGIC,
            epoch: self.head.epoch,
            seq: self.seq + 1,
            len,
            group_seq: self.group_seq,
            flags: if lags && settles { flag::SETTLES } else { 0 },
            ..Header::zeroed()
        };
        header.crc = self.record_checksum(&header, body);
        self.region.write(start, bytes_of(&header));
        if syncs {
            let from = if lags { self.superblock.areas.ring.off + self.unsettled_ring } else { start };
            self.sync_or_fail(from, start + HEADER + len - from)?;
        }
        self.region.publish(COMMITTED, seal(header.seq));
        self.seq = header.seq;
        self.ring_used = (self.ring_used + HEADER + len).next_multiple_of(HEADER);
        match settles {
            true => self.all_settled(),
            false => self.unsettled_frames = (first, end),
        }
        (self.journal.used, self.journal.count) = (0, 0);
        self.transaction.open = false;
        self.transaction.written += HEADER + len;
        Ok(header.seq)
    }

    /// Bytes that the last commit wrote: its record, and pages that went to their frames directly.
    #[inline]
    pub fn last_commit_len(&self) -> u64 {
        self.transaction.written
    }

    /// Must a commit be on the medium before it counts?
    #[inline]
    pub(crate) fn syncs(&self) -> bool {
        #[cfg(test)]
        if self.mutant.skip_sync {
            return false;
        }
        self.superblock.params.durable
    }

    /// Whether the ring has reached its nominal length. A store that is never folded works, and grows.
    #[inline]
    pub fn wants_fold(&self) -> bool {
        self.ring_used >= self.superblock.params.ring_len
    }

    /// Over the entries at `body`, then over the header without its checksum.
    #[inline]
    pub(crate) fn record_checksum(&self, header: &Header, body: u64) -> u32 {
        let crc = self.region.checksum(self.cpu, self.seed, body, header.len);
        crate::crc::crc32c(self.cpu, crc, bytes_of(&Header { crc: 0, ..*header }))
    }

    /// Region offset of the record being written.
    #[inline]
    pub(crate) fn ring_start(&self) -> u64 {
        self.superblock.areas.ring.off + self.ring_used
    }

    /// Why nothing can be changed, if so.
    pub(crate) fn refusal(&self) -> Option<StoreError> {
        match (self.read_only, self.damaged) {
            (true, _) => Some(StoreError::ReadOnly),
            (_, true) => Some(StoreError::Damaged),
            _ => None,
        }
    }

    #[cold]
    pub(crate) fn fail(&mut self, error: StoreError) {
        self.transaction.failed.get_or_insert(error);
    }

    pub(crate) fn sync_or_fail(&mut self, off: u64, len: u64) -> Result<(), StoreError> {
        let done = self.region.sync_pages_of(off, len).map_err(StoreError::from);
        if let Err(error) = done {
            self.fail(error);
        }
        done
    }

    /// Appends an entry made of `parts`, padded to 8 bytes; returns where the parts begin.
    #[inline]
    pub(crate) fn append(
        &mut self,
        kind: u16,
        detail: u16,
        count: u32,
        word: u64,
        parts: &[&[u8]],
    ) -> Result<u64, StoreError> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let at = self.reserve(TAG + len.next_multiple_of(8))?;
        self.region.write(at, bytes_of(&Tag { kind, detail, count, word }));
        let mut to = at + TAG;
        for part in parts {
            self.region.write(to, part);
            to += part.len() as u64;
        }
        let padding = self.transaction.cursor - to;
        if padding != 0 {
            self.region.write(to, &[0; 8][..padding as usize % 8]);
        }
        Ok(at + TAG)
    }

    /// Takes `len` bytes of the ring for an entry.
    #[inline]
    pub(crate) fn reserve(&mut self, len: u64) -> Result<u64, StoreError> {
        if !self.transaction.open {
            return Err(StoreError::NoTransaction);
        }
        if let Some(error) = self.transaction.failed {
            return Err(error);
        }
        let ring = self.superblock.areas.ring;
        let at = self.transaction.cursor;
        if (ring.off + ring.len).saturating_sub(at) < len {
            return Err(StoreError::NoRoom(Area::Ring));
        }
        self.transaction.cursor = at + len;
        if at + len - ring.off > self.ring_ready {
            self.make_ready(at + len - ring.off);
        }
        Ok(at)
    }

    /// Has the first `used` bytes of the ring in memory, and some more: pages that are asked for together take the kernel a third of
    /// the time that a fault each takes. Where all that is changed goes to a medium they are left alone.
    #[cold]
    fn make_ready(&mut self, used: u64) {
        let ring = self.superblock.areas.ring;
        let ahead = (used / 2).clamp(LEAST_AHEAD, MOST_AHEAD);
        let ready = (used + ahead).next_multiple_of(PAGE).min(ring.len);
        if !self.superblock.params.durable {
            let from = self.ring_ready / PAGE * PAGE;
            self.region.expect(ring.off + from, ready - from);
        }
        self.ring_ready = ready;
    }

    fn try_put(&mut self, kind: u16, key: u64, first: &[u8], second: &[u8]) -> Result<(), StoreError> {
        let len = u32::try_from(first.len() + second.len()).map_err(|_| StoreError::NoRoom(Area::Objects))?;
        let place = self.objects.place(kind, key, len).ok_or(StoreError::NoRoom(Area::Objects))?;
        let at = self.append(kind::PUT, kind, len, key, &[first, second])?;
        self.objects.put(place, at);
        Ok(())
    }
}
