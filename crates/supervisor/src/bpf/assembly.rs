//! Instructions of BPF, for programs that are assembled here: building outlast takes no compiler for BPF, and running it no loader of its
//! object files.

use super::Instruction;

/// Registers: results and arguments of calls, what survives them, the stack.
pub const R0: u8 = 0;
pub const R1: u8 = 1;
pub const R2: u8 = 2;
pub const R3: u8 = 3;
pub const R4: u8 = 4;
pub const R6: u8 = 6;
pub const R7: u8 = 7;
pub const R8: u8 = 8;
pub const R9: u8 = 9;
pub const R10: u8 = 10;

/// Operation codes.
pub mod op {
    pub const LOAD_64: u8 = 0x79;
    pub const LOAD_32: u8 = 0x61;
    pub const STORE_32: u8 = 0x63;
    pub const STORE_64: u8 = 0x7b;
    pub const STORE_VALUE_64: u8 = 0x7a;
    pub const WIDE: u8 = 0x18;
    pub const MOVE: u8 = 0xbf;
    pub const MOVE_VALUE: u8 = 0xb7;
    pub const ADD: u8 = 0x0f;
    pub const ADD_VALUE: u8 = 0x07;
    pub const AND_VALUE: u8 = 0x57;
    pub const SHIFT_LEFT_VALUE: u8 = 0x67;
    pub const SHIFT_RIGHT_VALUE: u8 = 0x77;
    pub const OR: u8 = 0x4f;
    pub const IF_EQUAL_VALUE: u8 = 0x15;
    pub const IF_NOT_EQUAL_VALUE: u8 = 0x55;
    pub const IF_NOT_EQUAL: u8 = 0x5d;
    pub const IF_LESS: u8 = 0xad;
    pub const JUMP: u8 = 0x05;
    pub const ATOMIC_64: u8 = 0xdb;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
}

/// Immediate of an atomic operation: add, and fetch what was there.
pub const ADD_AND_FETCH: i32 = 0x01;
/// Source register of a wide load: what is loaded is the address of the first element of the map with this
/// descriptor.
pub const MAP_VALUE: u8 = 2;

/// The same: what is loaded is the map.
pub const MAP: u8 = 1;

/// Stands for a jump to the end until that is known.
pub const TO_END: i16 = i16::MAX;

pub const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: from << 4 | to, offset, immediate }
}

/// A load of 64 bits takes the room of two instructions.
pub fn wide(to: u8, kind: u8, value: u64) -> [Instruction; 2] {
    [insn(op::WIDE, to, kind, 0, value as i32), insn(0, 0, 0, 0, (value >> 32) as i32)]
}

/// Ends a program, and has its jumps to the end lead there.
pub fn ended(mut code: Vec<Instruction>) -> Vec<Instruction> {
    let end = code.len();
    code.extend([insn(op::MOVE_VALUE, R0, 0, 0, 0), insn(op::EXIT, 0, 0, 0, 0)]);
    for (at, instruction) in code.iter_mut().enumerate() {
        if instruction.offset == TO_END {
            instruction.offset = (end - at - 1) as i16;
        }
    }
    code
}
