//! Objects: named byte strings beside the pages (thread contexts, descriptors, mappings …).
//!
//! Their bytes stay where they were written, in the ring or in a snapshot; working memory lists where.

use crate::region::Region;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};

/// Where an object's bytes lie.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Object {
    pub key: u64,
    /// Offset in the region.
    pub at: u64,
    /// Bytes.
    pub len: u32,
    pub kind: u16,
    reserved: u16,
}

/// Header of an object in a snapshot; its bytes follow, padded to 8.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Stored {
    kind: u16,
    reserved: u16,
    len: u32,
    key: u64,
}

const STORED: u64 = core::mem::size_of::<Stored>() as u64;

fn stored_len(len: u32) -> u64 {
    STORED + (len as u64).next_multiple_of(8)
}

/// Where an object goes.
pub struct Place {
    slot: Result<usize, usize>,
    snapshot_len: u64,
    kind: u16,
    key: u64,
    len: u32,
}

/// All objects, in the order of kind and key.
pub struct ObjectIndex<'s> {
    sorted: &'s mut [Object],
    count: usize,
    /// Bytes that a snapshot of all objects takes.
    snapshot_len: u64,
    /// Bytes that it may take.
    limit: u64,
}

impl<'s> ObjectIndex<'s> {
    /// An empty index; snapshots are limited to `limit` bytes.
    pub fn new(sorted: &'s mut [Object], limit: u64) -> ObjectIndex<'s> {
        ObjectIndex { sorted, count: 0, snapshot_len: 0, limit }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.count, self.snapshot_len) = (0, 0);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes that a snapshot of all objects takes.
    pub fn snapshot_len(&self) -> u64 {
        self.snapshot_len
    }

    /// All of them.
    pub fn all(&self) -> &[Object] {
        &self.sorted[..self.count]
    }

    fn position(&self, kind: u16, key: u64) -> Result<usize, usize> {
        self.all().binary_search_by(|object| (object.kind, object.key).cmp(&(kind, key)))
    }

    /// Looks one up.
    pub fn find(&self, kind: u16, key: u64) -> Option<Object> {
        self.position(kind, key).ok().map(|at| self.sorted[at])
    }

    /// Where an object of this kind, key and length goes. None if there is no room for it.
    #[inline]
    pub fn place(&self, kind: u16, key: u64, len: u32) -> Option<Place> {
        let (slot, old) = match self.position(kind, key) {
            Ok(at) => (Ok(at), stored_len(self.sorted[at].len)),
            Err(at) => (Err(at), 0),
        };
        let snapshot_len = self.snapshot_len - old + stored_len(len);
        let fits = snapshot_len <= self.limit && (slot.is_ok() || self.count < self.sorted.len());
        fits.then_some(Place { slot, snapshot_len, kind, key, len })
    }

    /// Notes where an object's new bytes are. Nothing was changed since it was placed.
    #[inline]
    pub fn put(&mut self, place: Place, at: u64) {
        let Place { slot, snapshot_len, kind, key, len } = place;
        if let Err(slot) = slot {
            self.sorted.copy_within(slot..self.count, slot + 1);
            self.count += 1;
        }
        self.snapshot_len = snapshot_len;
        let (Ok(slot) | Err(slot)) = slot;
        self.sorted[slot] = Object { key, at, len, kind, reserved: 0 };
    }

    /// Forgets one; there need not be such an object.
    pub fn delete(&mut self, kind: u16, key: u64) {
        if let Ok(slot) = self.position(kind, key) {
            self.snapshot_len -= stored_len(self.sorted[slot].len);
            self.sorted.copy_within(slot + 1..self.count, slot);
            self.count -= 1;
        }
    }

    /// Copies all objects to `off`, where [`ObjectIndex::snapshot_len`] bytes are free.
    pub fn write_snapshot<R: Region>(&self, region: &mut R, off: u64) {
        let mut to = off;
        for object in self.all() {
            let stored = Stored { kind: object.kind, reserved: 0, len: object.len, key: object.key };
            region.write(to, bytes_of(&stored));
            let padded = (object.len as u64).next_multiple_of(8);
            region.copy(object.at, to + STORED, object.len as u64);
            let padding = padded - object.len as u64;
            region.write(to + STORED + object.len as u64, &[0; 8][..padding as usize]);
            to += STORED + padded;
        }
    }

    /// From now on the objects' bytes are those of the snapshot at `off`.
    pub fn move_to_snapshot(&mut self, off: u64) {
        let mut to = off;
        for object in &mut self.sorted[..self.count] {
            object.at = to + STORED;
            to += stored_len(object.len);
        }
    }

    /// Fills an empty index from a snapshot of `len` bytes with `count` objects, whose checksum was right.
    /// None if it is nonsense all the same; false if the index is too small.
    pub fn read_snapshot<R: Region>(&mut self, region: &R, off: u64, len: u64, count: u32) -> Option<bool> {
        let end = off.checked_add(len)?;
        let mut at = off;
        for _ in 0..count {
            if end - at < STORED {
                return None;
            }
            let mut stored = Stored::zeroed();
            region.read(at, bytes_of_mut(&mut stored));
            if end - at < stored_len(stored.len) {
                return None;
            }
            let next = self.all().last().is_none_or(|last| (last.kind, last.key) < (stored.kind, stored.key));
            if !next {
                return None;
            }
            let Some(place) = self.place(stored.kind, stored.key, stored.len) else { return Some(false) };
            self.put(place, at + STORED);
            at += stored_len(stored.len);
        }
        (at == end).then_some(true)
    }
}
