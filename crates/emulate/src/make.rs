//! Making an instruction on a copy of its target.

use crate::arithmetic::{binary, bit, compared, holds, shift, unary, Binary};
use crate::decode::{Kind, Source, Write};
use crate::operand::{mask, Part, Target};
use crate::{MAX_LEN, MAX_WRITTEN};
use outlast_image::context::Registers;

const _: () = assert!(MAX_LEN < 16);
const DIRECTION: u64 = 1 << 10;
const ZERO: u64 = 1 << 6;
const RAX: Part = Part { n: 0, is_high: false };

/// Where vector registers are read.
pub trait Vectors {
    /// All bytes of a register, those that the processor does not have being 0. `None`: it cannot be told.
    fn register(&self, n: u8) -> Option<[u8; MAX_WRITTEN]>;
}

/// What a string instruction puts down for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The lowest bytes of rax.
    Value(u64),
    /// What lies at rsi.
    Copied,
}

/// A string instruction, as far as it goes without a look at the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strings {
    pub element: Element,
    /// Bytes of an element.
    pub size: usize,
    /// How many are left; ascending addresses.
    pub count: u64,
}

impl Write {
    /// Where it writes. `fs_base`: the thread's own.
    pub fn target(&self, regs: &Registers, fs_base: u64) -> Target {
        let mut address = self.operand.address(regs, self.len, fs_base);
        if let Kind::Bit(_, Source::Register(part)) = self.kind {
            // A string of bits, of which the operand is the beginning.
            let size = self.size as u32;
            let number = part.get(regs, self.size as usize);
            let unused = 64 - 8 * size;
            let signed = ((number << unused) as i64) >> unused;
            address = address.wrapping_add((signed >> (8 * size).ilog2()).wrapping_mul(size as i64) as u64);
        }
        Target { address, len: self.size as usize }
    }

    /// The same as a string instruction. `None`: it is none. One that goes downwards has no count.
    pub fn string(&self, regs: &Registers) -> Option<Strings> {
        let (element, repeats) = match self.kind {
            Kind::Store { repeats } => (Element::Value(regs.rax), repeats),
            Kind::Copy { repeats } => (Element::Copied, repeats),
            _ => return None,
        };
        let count = match () {
            _ if regs.eflags & DIRECTION != 0 => 0,
            _ if repeats => regs.rcx,
            _ => 1,
        };
        Some(Strings { element, size: self.size as usize, count })
    }

    /// So many elements of a string instruction are done. Is it over?
    pub fn advance(&self, regs: &mut Registers, elements: u64) -> bool {
        let len = elements.wrapping_mul(self.size as u64);
        regs.rdi = regs.rdi.wrapping_add(len);
        let repeats = match self.kind {
            Kind::Copy { repeats } => {
                regs.rsi = regs.rsi.wrapping_add(len);
                repeats
            }
            Kind::Store { repeats } => repeats,
            _ => false,
        };
        if repeats {
            regs.rcx = regs.rcx.wrapping_sub(elements);
        }
        !repeats || regs.rcx == 0
    }

    /// Changes `cell`, which holds what lies at the target, and the registers but for rip. False: nothing was done.
    pub fn make(&self, regs: &mut Registers, vectors: &dyn Vectors, cell: &mut [u8]) -> bool {
        let size = self.size as usize;
        match self.kind {
            _ if cell.len() != size => return false,
            Kind::Vector { n, from } => {
                let Some(register) = vectors.register(n) else { return false };
                cell.copy_from_slice(&register[from as usize..from as usize + size]);
                return true;
            }
            Kind::CompareExchangePair => {
                pair(regs, cell);
                return true;
            }
            Kind::Store { .. } | Kind::Copy { .. } => return false,
            _ => (),
        }
        let old = number(cell);
        let value = |source: Source, regs: &Registers| match source {
            Source::Register(part) => part.get(regs, size),
            Source::Immediate(value) => value as u64 & mask(size),
        };
        let new = match self.kind {
            Kind::Move(source) => value(source, regs),
            Kind::Binary(what, source) => {
                with_flags(regs, |regs| binary(what, size, old, value(source, regs), regs.eflags))
            }
            Kind::Unary(what) => with_flags(regs, |regs| unary(what, size, old, regs.eflags)),
            Kind::Shift(what, count) => with_flags(regs, |regs| {
                let count = match count {
                    Source::Register(part) => part.get(regs, 1),
                    Source::Immediate(count) => count as u64 & 0xff,
                };
                shift(what, size, old, count, regs.eflags)
            }),
            Kind::Bit(what, source) => with_flags(regs, |regs| bit(what, size, old, value(source, regs), regs.eflags)),
            Kind::Exchange(part) => {
                let new = part.get(regs, size);
                part.set(regs, size, old);
                new
            }
            Kind::ExchangeAdd(part) => {
                let added = part.get(regs, size);
                let new = with_flags(regs, |regs| binary(Binary::Add, size, old, added, regs.eflags));
                part.set(regs, size, old);
                new
            }
            Kind::CompareExchange(part) => {
                let expected = RAX.get(regs, size);
                regs.eflags = compared(size, expected, old, regs.eflags);
                if expected == old {
                    part.get(regs, size)
                } else {
                    RAX.set(regs, size, old);
                    old
                }
            }
            Kind::SetOn(condition) => holds(condition, regs.eflags) as u64,
            _ => return false,
        };
        cell.copy_from_slice(&new.to_le_bytes()[..size]);
        true
    }
}

/// The result of what also gives flags.
fn with_flags(regs: &mut Registers, f: impl FnOnce(&Registers) -> (u64, u64)) -> u64 {
    let (value, flags) = f(regs);
    regs.eflags = flags;
    value
}

fn number(cell: &[u8]) -> u64 {
    cell.iter().rev().fold(0, |value, byte| value << 8 | *byte as u64)
}

/// cmpxchg8b, cmpxchg16b.
fn pair(regs: &mut Registers, cell: &mut [u8]) {
    let half = cell.len() / 2;
    let (low, high) = (number(&cell[..half]), number(&cell[half..]));
    let is_equal = (regs.rax & mask(half), regs.rdx & mask(half)) == (low, high);
    if is_equal {
        cell[..half].copy_from_slice(&regs.rbx.to_le_bytes()[..half]);
        cell[half..].copy_from_slice(&regs.rcx.to_le_bytes()[..half]);
        regs.eflags |= ZERO;
    } else {
        (regs.rax, regs.rdx) = (low, high);
        regs.eflags &= !ZERO;
    }
}
