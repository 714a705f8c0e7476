//! Where an instruction ends, and whether it does the same elsewhere: 64-bit mode, user code.
//!
//! Lengths are exact for all instructions that user code can execute (legacy, SSE, VEX, EVEX, XOP), because finding the
//! instruction *before* a site ([`crate::boundary`]) rests on following every stream. What may be *moved* is a closed
//! list of integer instructions and plain vector moves; everything else stays where it is.

use crate::instruction::{flags, flow, group_moves, prefix_fits, Instruction, Map};
use crate::opcode::{IMM16, IMM8, IMMV, IMMZ, INVALID, MODRM, MOFFS, MOVES, ONE, REL32, REL8, TWO};

/// Longest instruction of the architecture, in bytes.
pub const MAX_LEN: usize = 15;

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// No program can execute this in user mode.
    Invalid,
    /// It may be an instruction, but this decoder does not know its length for certain.
    Unknown,
    /// The bytes end within the instruction.
    Truncated,
}

/// Prefixes seen, as bits.
mod prefix {
    pub const OPERAND: u8 = 1;
    pub const ADDRESS: u8 = 2;
    pub const REPEAT: u8 = 4;
    pub const LOCK: u8 = 8;
    pub const FS_GS: u8 = 16;
    pub const IGNORED_SEGMENT: u8 = 32;
    pub const REX: u8 = 64;
    /// More than a compiler would write: a prefix twice, or a REX that another prefix follows.
    pub const ODD: u8 = 128;
}

/// Reads bytes one after the other, within the longest instruction.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Result<u8, Undecodable> {
        if self.at >= MAX_LEN {
            return Err(Undecodable::Invalid);
        }
        self.bytes.get(self.at).copied().ok_or(Undecodable::Truncated)
    }

    fn byte(&mut self) -> Result<u8, Undecodable> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, count: usize) -> Result<(), Undecodable> {
        (0..count).try_for_each(|_| self.byte().map(drop))
    }

    fn four(&mut self) -> Result<i32, Undecodable> {
        let mut value = [0; 4];
        for byte in &mut value {
            *byte = self.byte()?;
        }
        Ok(i32::from_le_bytes(value))
    }
}

/// Decodes the instruction at the start of `bytes`.
pub fn decode(bytes: &[u8]) -> Result<Instruction, Undecodable> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut prefixes = 0u8;
    let mut repeat = 0u8;
    let mut rex = 0u8;
    let first = loop {
        let byte = cursor.byte()?;
        let bit = match byte {
            0x66 => prefix::OPERAND,
            0x67 => prefix::ADDRESS,
            0xf0 => prefix::LOCK,
            0xf2 | 0xf3 => {
                repeat = byte;
                prefix::REPEAT
            }
            0x26 | 0x2e | 0x36 | 0x3e => prefix::IGNORED_SEGMENT,
            0x64 | 0x65 => prefix::FS_GS,
            0x40..=0x4f => prefix::REX,
            _ => break byte,
        };
        // A REX counts only right before the opcode.
        if prefixes & (bit | prefix::REX) != 0 {
            prefixes |= prefix::ODD;
        }
        rex = if bit == prefix::REX { byte } else { 0 };
        prefixes |= bit;
    };
    let wide = rex & 8 != 0;
    let (map, opcode, attributes) = match first {
        0x0f => match cursor.byte()? {
            0x38 => (Map::Other, cursor.byte()?, MODRM),
            0x3a => (Map::Other, cursor.byte()?, MODRM | IMM8),
            // SSE4a: two immediates with one prefix, none with another.
            0x78 => return Err(Undecodable::Unknown),
            two => (Map::Two, two, TWO[two as usize]),
        },
        // REX2 of processors to come.
        0xd5 => return Err(Undecodable::Unknown),
        0xc4 | 0xc5 | 0x62 => {
            if prefixes & (prefix::OPERAND | prefix::REPEAT | prefix::LOCK | prefix::REX) != 0 {
                return Err(Undecodable::Invalid);
            }
            vector(&mut cursor, first)?
        }
        0x8f if cursor.peek()? & 0x38 != 0 => extended(&mut cursor)?,
        one => (Map::One, one, ONE[one as usize]),
    };
    if attributes & INVALID != 0 {
        return Err(Undecodable::Invalid);
    }

    let modrm = if attributes & MODRM != 0 { Some(cursor.peek()?) } else { None };
    let rip_operand = if modrm.is_some() { operand(&mut cursor)? } else { None };
    let register = modrm.map_or(0, |byte| byte >> 3 & 7);

    // Groups whose member decides about the immediate.
    let mut immediates = attributes;
    if map == Map::One && (opcode == 0xf6 || opcode == 0xf7) && register < 2 {
        immediates |= if opcode == 0xf6 { IMM8 } else { IMMZ };
    }
    let short_operand = prefixes & prefix::OPERAND != 0 && !wide;
    let mut displacement = 0;
    if immediates & IMM16 != 0 {
        cursor.skip(2)?;
    }
    if immediates & IMM8 != 0 {
        cursor.skip(1)?;
    }
    if immediates & (IMMZ | IMMV) != 0 {
        let len = if immediates & IMMV != 0 && wide {
            8
        } else if short_operand {
            2
        } else {
            4
        };
        cursor.skip(len)?;
    }
    if immediates & MOFFS != 0 {
        cursor.skip(if prefixes & prefix::ADDRESS != 0 { 4 } else { 8 })?;
    }
    if immediates & REL8 != 0 {
        displacement = i32::from(cursor.byte()? as i8);
    }
    if immediates & REL32 != 0 {
        if short_operand {
            // Two or four bytes of displacement, depending on who made the processor.
            return Err(Undecodable::Unknown);
        }
        displacement = cursor.four()?;
    }

    let flow = flow(map, opcode, modrm, displacement);
    let nop = (map == Map::One && opcode == 0x90 && rex & 1 == 0 && prefixes & prefix::REPEAT == 0
        || map == Map::Two && opcode == 0x1f)
        && prefixes & prefix::LOCK == 0;
    let entry = map == Map::Two && opcode == 0x1e && modrm == Some(0xfa) && repeat == 0xf3;
    let (reads_flags, sets_flags) = flags(map, opcode, attributes, register);
    let legal_prefixes = prefixes & (prefix::ADDRESS | prefix::LOCK | prefix::IGNORED_SEGMENT | prefix::ODD) == 0
        && prefix_fits(map, opcode, attributes, prefixes & prefix::OPERAND != 0, repeat);
    let movable = attributes & MOVES != 0 && legal_prefixes && group_moves(map, opcode, modrm);
    Ok(Instruction { len: cursor.at as u8, flow, rip_operand, movable, reads_flags, sets_flags, nop, entry })
}

/// Passes ModRM, SIB and displacement; returns where a rip-relative displacement lies.
fn operand(cursor: &mut Cursor) -> Result<Option<u8>, Undecodable> {
    let modrm = cursor.byte()?;
    let (mode, base) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Ok(None);
    }
    let mut displacement = match mode {
        1 => 1,
        2 => 4,
        _ => 0,
    };
    let mut rip_operand = None;
    if base == 4 {
        if cursor.byte()? & 7 == 5 && mode == 0 {
            displacement = 4;
        }
    } else if base == 5 && mode == 0 {
        displacement = 4;
        rip_operand = Some(cursor.at as u8);
    }
    cursor.skip(displacement)?;
    Ok(rip_operand)
}

/// VEX and EVEX: payload, opcode and what follows it.
fn vector(cursor: &mut Cursor, first: u8) -> Result<(Map, u8, u16), Undecodable> {
    let map = match first {
        0xc5 => {
            cursor.skip(1)?;
            1
        }
        0xc4 => {
            let map = cursor.byte()? & 0x1f;
            cursor.skip(1)?;
            map
        }
        _ => {
            let payload = cursor.byte()?;
            if payload & 8 != 0 || cursor.byte()? & 4 == 0 {
                return Err(Undecodable::Unknown);
            }
            cursor.skip(1)?;
            payload & 7
        }
    };
    let opcode = cursor.byte()?;
    let attributes = match (map, opcode) {
        (1, 0x77) if first != 0x62 => 0,
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) => MODRM | IMM8,
        (1 | 2, _) => MODRM,
        (3, _) => MODRM | IMM8,
        (5 | 6, _) if first == 0x62 => MODRM,
        (0, _) => return Err(Undecodable::Invalid),
        _ => return Err(Undecodable::Unknown),
    };
    Ok((Map::Other, opcode, attributes))
}

/// XOP: payload, opcode and what follows it.
fn extended(cursor: &mut Cursor) -> Result<(Map, u8, u16), Undecodable> {
    let map = cursor.byte()? & 0x1f;
    cursor.skip(1)?;
    let opcode = cursor.byte()?;
    match map {
        8 => Ok((Map::Other, opcode, MODRM | IMM8)),
        9 => Ok((Map::Other, opcode, MODRM)),
        10 => Ok((Map::Other, opcode, MODRM | IMMZ)),
        _ => Err(Undecodable::Invalid),
    }
}
