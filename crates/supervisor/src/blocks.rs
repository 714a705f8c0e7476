//! What the engine's control blocks say of threads, read from outside. The program may have written anything there.

use crate::remote;
use libc::pid_t;
use outlast_image::context::Registers;
use outlast_image::control::ThreadBlocks;
use outlast_image::layout::{THREADS, THREADS_BASE, THREAD_LEN};
use outlast_stacks::At;
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// A block is not longer.
const BLOCK: usize = 4096;

/// What a thread's block says.
pub struct Block {
    pub thread: pid_t,
    /// What the program calls it.
    pub number: u32,
    /// Where its last call returns to, or has returned to, and its stack at that call.
    pub at: At,
    /// How many calls it has made.
    pub run: u64,
}

/// Those of all threads of which something can be known.
pub fn read(pid: pid_t, blocks: &ThreadBlocks) -> Vec<Block> {
    let first = blocks.first.load(Acquire);
    if first == 0 {
        return Vec::new();
    }
    let mut taken = [0; THREADS / 8];
    if remote::read_memory(pid, blocks.taken.load(Relaxed), &mut taken).is_err() {
        return Vec::new();
    }
    let is_taken = |place: &usize| taken[place / 8] >> (place % 8) & 1 != 0;
    let mut places: Vec<usize> = (0..THREADS).filter(is_taken).collect();
    if places.is_empty() {
        // A program of one thread does not note it.
        places.push(0);
    }
    let block = |place: usize| match place {
        0 => first,
        place => THREADS_BASE + place as u64 * THREAD_LEN,
    };
    places.into_iter().filter_map(|place| read_one(pid, place, block(place), blocks)).collect()
}

fn read_one(pid: pid_t, place: usize, block: u64, blocks: &ThreadBlocks) -> Option<Block> {
    let [calls, site, tid, number] = [&blocks.calls, &blocks.site, &blocks.tid, &blocks.number];
    let [calls, site, tid, number] = [calls, site, tid, number].map(|offset| offset.load(Relaxed) as usize);
    // The registers lie around the address of the site.
    let regs = site.checked_sub(offset_of!(Registers, rip))?;
    let [sp, bp] = [regs + offset_of!(Registers, rsp), regs + offset_of!(Registers, rbp)];
    let offsets = [calls, site, tid, number, sp, bp];
    if offsets.iter().any(|offset| *offset > BLOCK - 8) {
        return None;
    }
    let (start, end) = (offsets.iter().min()?, offsets.iter().max()? + 8);
    let mut bytes = vec![0; end - start];
    remote::read_memory(pid, block.checked_add(*start as u64)?, &mut bytes).ok()?;
    let word = |offset: usize| u64::from_ne_bytes(std::array::from_fn(|n| bytes[offset - start + n]));
    let [run, ip, tid, number, sp, bp] = offsets.map(word);
    let thread = match tid as u32 as pid_t {
        0 if place == 0 => pid,
        tid => tid,
    };
    Some(Block { thread, number: number as u32, at: At { ip, sp, bp }, run })
}
