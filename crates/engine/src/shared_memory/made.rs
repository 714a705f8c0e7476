//! A write that the engine makes in the program's place.

use super::header::{header, Header};
use super::table::Range;
use super::PROT_WRITE;
use crate::state::Engine;
use crate::thread::{self, Thread};
use crate::user;
use crate::vector;
use outlast_emulate::{decode, Element, Target, Vectors, Write, MAX_LEN, MAX_WRITTEN};
use outlast_image::layout::PAGE;

/// Makes the instruction at which the thread stands, its context being kept. False: it is none that can be made here, and nothing
/// was done. The caller holds the group's lock.
pub fn make(e: &Engine, t: &mut Thread) -> bool {
    let Some(write) = instruction(t.regs.rip) else { return false };
    let target = write.target(&t.regs, thread::fs_base());
    let range = e.shared_memory.find(target.address).filter(|range| range.alias != 0 && range.prot & PROT_WRITE != 0);
    let Some(range) = range else { return false };
    match write.string(&t.regs) {
        Some(_) => string(&write, t, target.address, &range),
        None => single(&write, t, target, &range),
    }
}

fn instruction(rip: u64) -> Option<Write> {
    let mut bytes = [0; MAX_LEN];
    // It may end with its page.
    let there = (PAGE - rip % PAGE) as usize;
    let whole = user::read_bytes(rip, &mut bytes) || there < MAX_LEN && user::read_bytes(rip, &mut bytes[..there]);
    if whole {
        decode(&bytes)
    } else {
        None
    }
}

/// Where the engine finds what the program finds at `address`.
fn aliased(range: &Range, address: u64) -> u64 {
    range.alias + (address - range.start)
}

/// Keeps what is in all pages of the target.
fn keep(h: &Header, address: u64, len: u64) -> bool {
    let first = address & !(PAGE - 1);
    (first..address + len).step_by(PAGE as usize).all(|page| h.keep(page))
}

fn single(write: &Write, t: &mut Thread, target: Target, range: &Range) -> bool {
    let len = target.len;
    if target.address + len as u64 > range.end || !keep(header(), target.address, len as u64) {
        return false;
    }
    let at = aliased(range, target.address);
    let mut cell = [0; MAX_WRITTEN];
    let cell = &mut cell[..len];
    let mut regs = t.regs;
    // SAFETY: the engine's own mapping, which ends where the range does.
    unsafe { core::ptr::copy_nonoverlapping(at as *const u8, cell.as_mut_ptr(), len) };
    if !write.make(&mut regs, &Saved(&t.page.xsave.0), cell) {
        return false;
    }
    // SAFETY: as above. Others may read at the same time: what is a word is written as one.
    unsafe { put(at, cell) };
    regs.rip += write.len as u64;
    t.regs = regs;
    true
}

/// Writes words as wide as the place allows.
unsafe fn put(at: u64, cell: &[u8]) {
    match cell.len() {
        2 if at % 2 == 0 => (at as *mut [u8; 2]).cast::<u16>().write_volatile(u16::from_ne_bytes([cell[0], cell[1]])),
        4 if at % 4 == 0 => (at as *mut u32).write_volatile(bytemuck::pod_read_unaligned(cell)),
        len if len >= 8 && at % 8 == 0 => {
            for (n, word) in cell.chunks_exact(8).enumerate() {
                (at as *mut u64).add(n).write_volatile(bytemuck::pod_read_unaligned(word));
            }
        }
        _ => {
            for (n, byte) in cell.iter().enumerate() {
                (at as *mut u8).add(n).write_volatile(*byte);
            }
        }
    }
}

/// The part of a string instruction that writes to the page of its target; the rest traps again.
fn string(write: &Write, t: &mut Thread, address: u64, range: &Range) -> bool {
    let Some(strings) = write.string(&t.regs) else { return false };
    let size = strings.size as u64;
    let count = strings.count.min((PAGE - address % PAGE) / size);
    let len = count * size;
    let overlaps =
        strings.element == Element::Copied && t.regs.rsi < address + len && address < t.regs.rsi.wrapping_add(len);
    if count == 0 || overlaps || !keep(header(), address, len) {
        return false;
    }
    let at = aliased(range, address);
    // SAFETY: the engine's own mapping, which has the whole page.
    let to = unsafe { core::slice::from_raw_parts_mut(at as *mut u8, len as usize) };
    match strings.element {
        Element::Value(value) => {
            let value = value.to_le_bytes();
            to.chunks_exact_mut(strings.size).for_each(|element| element.copy_from_slice(&value[..strings.size]));
        }
        Element::Copied => {
            if !user::read_bytes(t.regs.rsi, to) {
                // A part may have been copied.
                header().put_back(at & !(PAGE - 1));
                return false;
            }
        }
    }
    if write.advance(&mut t.regs, count) {
        t.regs.rip += write.len as u64;
    }
    true
}

/// The vector registers of a context that is kept.
struct Saved<'a>(&'a [u8]);

impl Vectors for Saved<'_> {
    fn register(&self, n: u8) -> Option<[u8; MAX_WRITTEN]> {
        vector::register(self.0, n)
    }
}
