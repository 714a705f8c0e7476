//! What an instruction does, as far as moving it is concerned.

use crate::opcode::{READS, REL32, REL8, SETS};

/// Where execution goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the following instruction.
    Next,
    /// To the following one or to `displacement` bytes after it, by condition code `condition` (0–15).
    Branch { condition: u8, displacement: i32 },
    /// To `displacement` bytes after the following instruction.
    Jump { displacement: i32 },
    /// Away, and not back to the following instruction: `ret`, `jmp *`.
    Leave,
    /// Away, and usually back: `call`, `syscall`, `int`.
    Call,
    /// Nowhere: `hlt`, `ud2`, `int3`.
    Stop,
    /// Short branches that have no long form: `loop`, `jrcxz`; and `xbegin`.
    Short,
}

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes, 1 to [`crate::decode::MAX_LEN`].
    pub len: u8,
    pub flow: Flow,
    /// Offset of the 4-byte displacement of a rip-relative operand.
    pub rip_operand: Option<u8>,
    /// Does the same at another address, once [`Instruction::rip_operand`] is re-based or the branch re-encoded.
    pub movable: bool,
    /// Depends on arithmetic flags set before it.
    pub reads_flags: bool,
    /// Overwrites all arithmetic flags that a condition can test.
    pub sets_flags: bool,
    /// `nop` in any of its lengths: padding.
    pub nop: bool,
    /// `endbr64`: something may jump here indirectly.
    pub entry: bool,
}

/// Which table an opcode was found in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Map {
    One,
    Two,
    Other,
}

/// Where execution goes after it.
pub(crate) fn flow(map: Map, opcode: u8, modrm: Option<u8>, displacement: i32) -> Flow {
    let condition = opcode & 15;
    match (map, opcode) {
        (Map::One, 0x70..=0x7f) | (Map::Two, 0x80..=0x8f) => Flow::Branch { condition, displacement },
        (Map::One, 0xe9 | 0xeb) => Flow::Jump { displacement },
        (Map::One, 0xe0..=0xe3) => Flow::Short,
        (Map::One, 0xc7) if modrm == Some(0xf8) => Flow::Short,
        (Map::One, 0xc2 | 0xc3 | 0xca | 0xcb | 0xcf) => Flow::Leave,
        (Map::One, 0xe8 | 0xcd) | (Map::Two, 0x05 | 0x34) => Flow::Call,
        (Map::One, 0xcc | 0xf1 | 0xf4) | (Map::Two, 0x0b | 0xb9 | 0xff) => Flow::Stop,
        (Map::One, 0xff) => match modrm.map_or(0, |byte| byte >> 3 & 7) {
            2 | 3 => Flow::Call,
            4 | 5 => Flow::Leave,
            _ => Flow::Next,
        },
        _ => Flow::Next,
    }
}

/// Whether the instruction (reads, overwrites) the arithmetic flags.
pub(crate) fn flags(map: Map, opcode: u8, attributes: u16, register: u8) -> (bool, bool) {
    let (reads, sets) = (attributes & READS != 0, attributes & SETS != 0);
    match (map, opcode) {
        // adc and sbb with an immediate.
        (Map::One, 0x80..=0x83) => (register == 2 || register == 3, sets),
        // rcl and rcr.
        (Map::One, 0xc0 | 0xc1 | 0xd0..=0xd3) => (register == 2 || register == 3, false),
        // test and neg; not, mul and div leave some flags as they were.
        (Map::One, 0xf6 | 0xf7) => (false, register < 2 || register == 3),
        _ => (reads, sets),
    }
}

/// Whether an instruction on the list of movable ones exists with these prefixes.
pub(crate) fn prefix_fits(map: Map, opcode: u8, attributes: u16, operand: bool, repeat: u8) -> bool {
    match (map, opcode) {
        (Map::One, 0x90) => repeat == 0 || repeat == 0xf3 && !operand,
        (Map::One, 0xc3) => !operand && (repeat == 0 || repeat == 0xf3),
        (Map::One, 0xc2 | 0xff) => !operand && repeat == 0,
        (Map::Two, 0xbc | 0xbd) => repeat != 0xf2,
        (Map::Two, 0x10 | 0x11) => repeat == 0 || !operand,
        (Map::Two, 0x6f | 0x7f | 0x7e) => repeat == 0 || repeat == 0xf3 && !operand,
        (Map::Two, 0xd6) => repeat == 0 && operand,
        (Map::Two, 0xc8..=0xcf) => repeat == 0 && !operand,
        _ if attributes & (REL8 | REL32) != 0 => repeat == 0 && !operand,
        _ => repeat == 0,
    }
}

/// Whether this member of its group is on the list of movable instructions.
pub(crate) fn group_moves(map: Map, opcode: u8, modrm: Option<u8>) -> bool {
    let Some(modrm) = modrm else { return true };
    let (register, in_memory) = (modrm >> 3 & 7, modrm >> 6 != 3);
    match (map, opcode) {
        (Map::One, 0x8d) => in_memory,
        (Map::One, 0x8f | 0xc6 | 0xc7) => register == 0,
        (Map::One, 0xc0 | 0xc1 | 0xd0..=0xd3) => register != 6,
        (Map::One, 0xf6 | 0xf7) => register != 1,
        (Map::One, 0xfe) => register < 2,
        (Map::One, 0xff) => matches!(register, 0 | 1 | 4 | 6),
        (Map::Two, 0x1f) => register == 0,
        (Map::Two, 0xba) => register >= 4,
        _ => true,
    }
}
