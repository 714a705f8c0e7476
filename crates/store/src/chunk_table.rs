//! Chunk tables in the region: which address has which frames, and which of its pages are present.

use crate::areas::{Areas, ADDRESS_END, CHUNK, TABLE_ENTRY};
use crate::bitmap::Bitmap;
use crate::cpu::Cpu;
use crate::crc::crc32c;
use crate::index::{ChunkIndex, STALE};
use crate::region::Region;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};

/// One entry, 80 bytes. A chunk without a present page is free, whatever its address.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Stored {
    addr: u64,
    present: Bitmap,
    index: u32,
    crc: u32,
}

const CHECKED: usize = core::mem::size_of::<Stored>() - 4;
const _: () = assert!(core::mem::size_of::<Stored>() as u64 == TABLE_ENTRY);

/// Brings table `slot` up to date.
pub fn write<R: Region>(region: &mut R, areas: &Areas, slot: usize, chunks: &mut ChunkIndex, (cpu, seed): (Cpu, u32)) {
    for index in 0..chunks.used() {
        let state = chunks.state_mut(index);
        if state.flags & STALE[slot] == 0 {
            continue;
        }
        state.flags &= !STALE[slot];
        let addr = if state.live == [0; 8] { 0 } else { state.addr };
        let mut stored = Stored { addr, present: state.live, index, crc: 0 };
        stored.crc = crc32c(cpu, seed, &bytes_of(&stored)[..CHECKED]);
        region.write(areas.table_entry(slot, index), bytes_of(&stored));
    }
}

/// Fills an empty index from the first `count` entries of table `slot`. False if one of them is damaged.
pub fn read<R: Region>(
    region: &R,
    areas: &Areas,
    slot: usize,
    count: u32,
    chunks: &mut ChunkIndex,
    (cpu, seed): (Cpu, u32),
) -> bool {
    if count > areas.chunks() || count > chunks.capacity() {
        return false;
    }
    chunks.extend(count);
    for index in 0..count {
        let mut stored = Stored::zeroed();
        region.read(areas.table_entry(slot, index), bytes_of_mut(&mut stored));
        if stored.crc != crc32c(cpu, seed, &bytes_of(&stored)[..CHECKED]) || stored.index != index {
            return false;
        }
        if stored.present != [0; 8] {
            if stored.addr % CHUNK != 0 || stored.addr >= ADDRESS_END || !chunks.map(stored.addr, index) {
                return false;
            }
            let state = chunks.state_mut(index);
            (state.live, state.busy) = (stored.present, stored.present);
        }
        chunks.state_mut(index).flags |= STALE[0] | STALE[1];
        chunks.state_mut(index).flags &= !STALE[slot];
    }
    true
}
