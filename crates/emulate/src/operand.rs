//! The operand in memory, and registers by their numbers.

use outlast_image::context::Registers;

/// Where an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub address: u64,
    /// Bytes.
    pub len: usize,
}

/// The parts of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operand {
    pub base: Option<u8>,
    pub index: Option<u8>,
    /// Power of two.
    pub scale: u8,
    pub displacement: i64,
    /// Relative to the next instruction.
    pub by_rip: bool,
    /// Relative to the thread's own base.
    pub by_fs: bool,
}

impl Operand {
    /// The address, the instruction being `len` bytes long.
    pub fn address(&self, regs: &Registers, len: u8, fs_base: u64) -> u64 {
        let of = |register: Option<u8>| register.map_or(0, |n| get(regs, n));
        let rip = if self.by_rip { regs.rip.wrapping_add(len as u64) } else { 0 };
        let fs = if self.by_fs { fs_base } else { 0 };
        let index = of(self.index) << self.scale;
        of(self.base).wrapping_add(index).wrapping_add(self.displacement as u64).wrapping_add(rip).wrapping_add(fs)
    }
}

/// The register with this number, as instructions number them.
pub(crate) fn register(regs: &mut Registers, n: u8) -> &mut u64 {
    match n & 15 {
        0 => &mut regs.rax,
        1 => &mut regs.rcx,
        2 => &mut regs.rdx,
        3 => &mut regs.rbx,
        4 => &mut regs.rsp,
        5 => &mut regs.rbp,
        6 => &mut regs.rsi,
        7 => &mut regs.rdi,
        8 => &mut regs.r8,
        9 => &mut regs.r9,
        10 => &mut regs.r10,
        11 => &mut regs.r11,
        12 => &mut regs.r12,
        13 => &mut regs.r13,
        14 => &mut regs.r14,
        _ => &mut regs.r15,
    }
}

fn get(regs: &Registers, n: u8) -> u64 {
    let mut copy = *regs;
    *register(&mut copy, n)
}

/// A general register or a part of one, as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub n: u8,
    /// Bits 8 to 15: ah, ch, dh, bh.
    pub is_high: bool,
}

impl Part {
    pub fn get(self, regs: &Registers, size: usize) -> u64 {
        (get(regs, self.n) >> if self.is_high { 8 } else { 0 }) & mask(size)
    }

    /// Writes it, as the processor does: 4 bytes clear the upper half, fewer leave the rest.
    pub fn set(self, regs: &mut Registers, size: usize, value: u64) {
        let to = register(regs, self.n);
        let shift = if self.is_high { 8 } else { 0 };
        *to = match size {
            8 => value,
            4 => value & mask(4),
            _ => *to & !(mask(size) << shift) | (value & mask(size)) << shift,
        };
    }
}

/// The lowest `size` bytes.
pub(crate) fn mask(size: usize) -> u64 {
    if size >= 8 {
        u64::MAX
    } else {
        (1 << (8 * size)) - 1
    }
}
