//! What an instruction writes, and from what.

use crate::arithmetic::{Binary, Bit, Shift, Unary};
use crate::operand::{Operand, Part};
use crate::vector;
use crate::MAX_LEN;

/// A value that does not come from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Register(Part),
    Immediate(i64),
}

/// What is done to the operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Move(Source),
    Binary(Binary, Source),
    Unary(Unary),
    Shift(Shift, Source),
    Bit(Bit, Source),
    Exchange(Part),
    ExchangeAdd(Part),
    CompareExchange(Part),
    /// cmpxchg8b and cmpxchg16b.
    CompareExchangePair,
    SetOn(u8),
    /// Part of a vector register: its number, and the first byte.
    Vector {
        n: u8,
        from: u8,
    },
    /// stos, repeated or not.
    Store {
        repeats: bool,
    },
    /// movs, repeated or not.
    Copy {
        repeats: bool,
    },
}

/// An instruction that writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Bytes of the instruction.
    pub len: u8,
    pub(crate) kind: Kind,
    /// Bytes of the operand.
    pub(crate) size: u8,
    pub(crate) operand: Operand,
}

/// Prefixes and what follows them.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
    pub operand_size: bool,
    /// 0xf2, 0xf3 or 0.
    pub repeat: u8,
    pub rex: u8,
    by_fs: bool,
}

impl Reader<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at).filter(|_| self.at < MAX_LEN)?;
        self.at += 1;
        Some(byte)
    }

    /// A signed number of so many bytes.
    fn number(&mut self, len: usize) -> Option<i64> {
        let mut value = 0u64;
        for i in 0..len {
            value |= (self.byte()? as u64) << (8 * i);
        }
        let unused = 64 - 8 * len as u32;
        Some(((value << unused) as i64) >> unused)
    }

    /// The operand in memory that a ModRM byte names; a short displacement counts `unit` bytes. `None`: it names a register.
    pub fn operand(&mut self, modrm: u8, unit: i64) -> Option<Operand> {
        let (mode, low) = (modrm >> 6, modrm & 7);
        let (base_high, index_high) = ((self.rex & 1) << 3, (self.rex & 2) << 2);
        let mut operand = Operand { by_fs: self.by_fs, ..Default::default() };
        let mut wide = mode == 2;
        match low {
            _ if mode == 3 => return None,
            4 => {
                let sib = self.byte()?;
                let (index, base) = (sib >> 3 & 7 | index_high, sib & 7);
                operand.scale = sib >> 6;
                operand.index = (index != 4).then_some(index);
                wide |= base == 5 && mode == 0;
                operand.base = (base != 5 || mode != 0).then_some(base | base_high);
            }
            5 if mode == 0 => (operand.by_rip, wide) = (true, true),
            _ => operand.base = Some(low | base_high),
        }
        operand.displacement = match mode {
            1 => self.number(1)? * unit,
            _ if wide => self.number(4)?,
            _ => 0,
        };
        Some(operand)
    }

    fn size(&self, is_byte: bool) -> usize {
        match () {
            _ if is_byte => 1,
            _ if self.rex & 8 != 0 => 8,
            _ if self.operand_size => 2,
            _ => 4,
        }
    }

    /// The register that a ModRM byte names beside the operand.
    fn part(&self, modrm: u8, size: usize) -> Part {
        let n = modrm >> 3 & 7 | (self.rex & 4) << 1;
        // Without any REX these four are the upper halves of the first four.
        let is_high = size == 1 && self.rex == 0 && n >= 4;
        Part { n: if is_high { n - 4 } else { n }, is_high }
    }
}

/// Decodes the instruction at the start of `bytes`. `None`: it writes to no memory, or is not known.
pub fn decode(bytes: &[u8]) -> Option<Write> {
    let mut r = Reader { bytes, at: 0, operand_size: false, repeat: 0, rex: 0, by_fs: false };
    let first = loop {
        let byte = r.byte()?;
        match byte {
            0x66 => r.operand_size = true,
            0xf2 | 0xf3 => r.repeat = byte,
            0x64 => r.by_fs = true,
            // Each access is made alone anyhow. Segments that have no base.
            0xf0 | 0x26 | 0x2e | 0x36 | 0x3e => (),
            0x40..=0x4f => {
                r.rex = byte;
                let next = r.byte()?;
                // It counts only right before the opcode.
                if matches!(next, 0x66 | 0xf2 | 0xf3 | 0x64 | 0xf0 | 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f) {
                    return None;
                }
                break next;
            }
            _ => break byte,
        }
    };
    match first {
        0x0f => two(&mut r),
        0xc4 | 0xc5 | 0x62 if r.rex == 0 && r.repeat == 0 && !r.operand_size => vector::extended(&mut r, first),
        _ => one(&mut r, first),
    }
}

/// An operand in memory with what is done to it, `immediate` bytes of a value following it.
fn with_memory(
    r: &mut Reader,
    modrm: u8,
    size: usize,
    kind: impl FnOnce(&mut Reader) -> Option<Kind>,
) -> Option<Write> {
    let operand = r.operand(modrm, 1)?;
    let kind = kind(r)?;
    Some(Write { len: r.at as u8, kind, size: size as u8, operand })
}

fn one(r: &mut Reader, opcode: u8) -> Option<Write> {
    const BINARY: [Option<Binary>; 8] = [
        Some(Binary::Add),
        Some(Binary::Or),
        Some(Binary::Adc),
        Some(Binary::Sbb),
        Some(Binary::And),
        Some(Binary::Sub),
        Some(Binary::Xor),
        None,
    ];
    let size = r.size(opcode & 1 == 0);
    let immediate = size.min(4);
    if matches!(opcode, 0xa4 | 0xa5 | 0xaa | 0xab) {
        let repeats = r.repeat != 0;
        let kind = if opcode < 0xa8 { Kind::Copy { repeats } } else { Kind::Store { repeats } };
        let operand = Operand { base: Some(7), ..Default::default() };
        // A prefix is about the source.
        return (!r.by_fs).then_some(Write { len: r.at as u8, kind, size: size as u8, operand });
    }
    let modrm = r.byte()?;
    let group = (modrm >> 3 & 7) as usize;
    let part = r.part(modrm, size);
    match opcode {
        0x00 | 0x01 | 0x08 | 0x09 | 0x10 | 0x11 | 0x18 | 0x19 | 0x20 | 0x21 | 0x28 | 0x29 | 0x30 | 0x31 => {
            let what = BINARY[(opcode >> 3) as usize]?;
            with_memory(r, modrm, size, |_| Some(Kind::Binary(what, Source::Register(part))))
        }
        0x80 | 0x81 | 0x83 => {
            let len = if opcode == 0x81 { immediate } else { 1 };
            with_memory(r, modrm, size, |r| Some(Kind::Binary(BINARY[group]?, Source::Immediate(r.number(len)?))))
        }
        0x86 | 0x87 => with_memory(r, modrm, size, |_| Some(Kind::Exchange(part))),
        0x88 | 0x89 => with_memory(r, modrm, size, |_| Some(Kind::Move(Source::Register(part)))),
        0xc6 | 0xc7 if group == 0 => {
            with_memory(r, modrm, size, |r| Some(Kind::Move(Source::Immediate(r.number(immediate)?))))
        }
        0xc0 | 0xc1 | 0xd0..=0xd3 => {
            const SHIFTS: [Option<Shift>; 8] = [
                Some(Shift::Rol),
                Some(Shift::Ror),
                Some(Shift::Rcl),
                Some(Shift::Rcr),
                Some(Shift::Shl),
                Some(Shift::Shr),
                None,
                Some(Shift::Sar),
            ];
            with_memory(r, modrm, size, |r| {
                let count = match opcode {
                    0xc0 | 0xc1 => Source::Immediate(r.number(1)?),
                    0xd0 | 0xd1 => Source::Immediate(1),
                    _ => Source::Register(Part { n: 1, is_high: false }),
                };
                Some(Kind::Shift(SHIFTS[group]?, count))
            })
        }
        0xf6 | 0xf7 if group == 2 => with_memory(r, modrm, size, |_| Some(Kind::Unary(Unary::Not))),
        0xf6 | 0xf7 if group == 3 => with_memory(r, modrm, size, |_| Some(Kind::Unary(Unary::Neg))),
        0xfe | 0xff if group == 0 => with_memory(r, modrm, size, |_| Some(Kind::Unary(Unary::Inc))),
        0xfe | 0xff if group == 1 => with_memory(r, modrm, size, |_| Some(Kind::Unary(Unary::Dec))),
        _ => None,
    }
}

fn two(r: &mut Reader) -> Option<Write> {
    let opcode = r.byte()?;
    let modrm = r.byte()?;
    let size = r.size(opcode & 1 == 0);
    let wide = r.size(false);
    let group = modrm >> 3 & 7;
    match opcode {
        0x90..=0x9f => with_memory(r, modrm, 1, |_| Some(Kind::SetOn(opcode & 15))),
        0xb0 | 0xb1 => {
            let part = r.part(modrm, size);
            with_memory(r, modrm, size, |_| Some(Kind::CompareExchange(part)))
        }
        0xc0 | 0xc1 => {
            let part = r.part(modrm, size);
            with_memory(r, modrm, size, |_| Some(Kind::ExchangeAdd(part)))
        }
        // movnti
        0xc3 if r.repeat == 0 && !r.operand_size => {
            let part = r.part(modrm, wide);
            with_memory(r, modrm, wide, |_| Some(Kind::Move(Source::Register(part))))
        }
        0xc7 if group == 1 => {
            let size = if r.rex & 8 != 0 { 16 } else { 8 };
            with_memory(r, modrm, size, |_| Some(Kind::CompareExchangePair))
        }
        0xab | 0xb3 | 0xbb => {
            let what = [Bit::Set, Bit::Reset, Bit::Complement][((opcode - 0xab) >> 3) as usize];
            let part = r.part(modrm, wide);
            with_memory(r, modrm, wide, |_| Some(Kind::Bit(what, Source::Register(part))))
        }
        0xba if group > 4 => {
            let what = [Bit::Set, Bit::Reset, Bit::Complement][group as usize - 5];
            with_memory(r, modrm, wide, |r| Some(Kind::Bit(what, Source::Immediate(r.number(1)?))))
        }
        _ => vector::plain(r, opcode, modrm),
    }
}
