//! Divides the working memory that the caller hands in. It need not be zeroed, and is touched only as far as used.

use crate::areas::{Areas, MAX_CHUNKS};
use crate::index::{ChunkIndex, ChunkState};
use crate::journal::ENTRY_MAX;
use crate::objects::{Object, ObjectIndex};
use core::mem::size_of;

/// More objects than this have no place in the index.
pub const MAX_OBJECTS: u64 = 1 << 18;

/// Enough working memory for every store: about 50 MiB, touched at 320 bytes for each 2 MiB of the program's memory and
/// 24 bytes an object.
pub const SCRATCH_LEN: u64 = FIXED + MAX_CHUNKS * PER_CHUNK + MAX_OBJECTS * size_of::<Object>() as u64;

const PER_CHUNK: u64 = size_of::<ChunkState>() as u64 + 8;
/// Alignment and the buffer.
const FIXED: u64 = 64 + ENTRY_MAX as u64;

/// Working memory, divided.
pub struct Scratch<'s> {
    pub chunks: ChunkIndex<'s>,
    pub objects: ObjectIndex<'s>,
    pub buffer: &'s mut [u8],
}

impl<'s> Scratch<'s> {
    /// The least that a store with these areas needs: room for all of its chunks and for 1024 objects.
    pub fn needed(areas: &Areas) -> u64 {
        FIXED + areas.chunks() as u64 * PER_CHUNK + 1024 * size_of::<Object>() as u64
    }

    /// None if `memory` is shorter than [`Scratch::needed`].
    pub fn divide(memory: &'s mut [u8], areas: &Areas) -> Option<Scratch<'s>> {
        if (memory.len() as u64) < Scratch::needed(areas) {
            return None;
        }
        let skip = memory.as_ptr().align_offset(64);
        let memory = &mut memory[skip..];
        let chunks = areas.chunks() as usize;
        let (states, memory) = memory.split_at_mut(chunks * size_of::<ChunkState>());
        let (order, memory) = memory.split_at_mut(chunks * 8);
        let (buffer, memory) = memory.split_at_mut(ENTRY_MAX);
        let objects = (memory.len() / size_of::<Object>()).min(MAX_OBJECTS as usize);
        let (sorted, _) = memory.split_at_mut(objects * size_of::<Object>());
        Some(Scratch {
            chunks: ChunkIndex::new(bytemuck::cast_slice_mut(states), bytemuck::cast_slice_mut(order)),
            objects: ObjectIndex::new(
                bytemuck::cast_slice_mut(sorted),
                areas.snapshots[0].len.min(areas.snapshots[1].len),
            ),
            buffer,
        })
    }
}
