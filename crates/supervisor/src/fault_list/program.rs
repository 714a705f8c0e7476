//! The BPF program, assembled here: building outlast takes no compiler for BPF, and running it no loader of its object files.
//! Attached to the raw tracepoints page_fault_user and page_fault_kernel, whose arguments are the address, the registers
//! and the processor's error code. What each piece says in C stands above it.

use super::bpf::Instruction;
use outlast_image::fault_list::{ADDRESSES, ADDRESS_BITS, COUNT, ENTRIES};

/// Registers: results and arguments of calls, what survives them, the stack.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R6: u8 = 6;
const R7: u8 = 7;
const R10: u8 = 10;

/// X86_PF_WRITE.
const WRITE: i32 = 2;
/// Helper `bpf_get_ns_current_pid_tgid`, and the size of what it fills in: thread id, process id.
const GET_NS_CURRENT_PID_TGID: i32 = 120;
const IDS: i32 = 8;

/// Operation codes.
mod op {
    pub const LOAD_64: u8 = 0x79;
    pub const LOAD_32: u8 = 0x61;
    pub const STORE_64: u8 = 0x7b;
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
    pub const ATOMIC_64: u8 = 0xdb;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
}

/// Immediate of an atomic operation: add, and fetch what was there.
const ADD_AND_FETCH: i32 = 0x01;
/// Source register of a wide load: what is loaded is the address of the first element of the map with this
/// descriptor.
const MAP_VALUE: u8 = 2;

/// A pid namespace, by the device and inode of its file.
#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    pub device: u64,
    pub inode: u64,
}

/// Descriptors of the two maps: the list, and the process that is followed.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    pub list: i32,
    pub followed: i32,
}

/// The instructions, for processes numbered as in `namespace`.
pub fn program(maps: Maps, namespace: Namespace) -> Vec<Instruction> {
    // Targets of the jumps below: how many instructions are left behind the one that jumps.
    let mut code = vec![
        // if (!(args[2] & WRITE)) return 0;
        insn(op::LOAD_64, R2, R1, 16, 0),
        insn(op::AND_VALUE, R2, 0, 0, WRITE),
        insn(op::IF_EQUAL_VALUE, R2, 0, TO_END, 0),
        // R6 = args[0];
        insn(op::LOAD_64, R6, R1, 0, 0),
    ];
    // if (get_ns_current_pid_tgid(device, inode, &ids, sizeof ids)) return 0;
    code.extend(wide(R1, 0, namespace.device));
    code.extend(wide(R2, 0, namespace.inode));
    code.extend([
        insn(op::MOVE, R3, R10, 0, 0),
        insn(op::ADD_VALUE, R3, 0, 0, -IDS),
        insn(op::MOVE_VALUE, R4, 0, 0, IDS),
        insn(op::CALL, 0, 0, 0, GET_NS_CURRENT_PID_TGID),
        insn(op::IF_NOT_EQUAL_VALUE, R0, 0, TO_END, 0),
    ]);
    // if (ids.process != followed) return 0;
    code.extend(wide(R7, MAP_VALUE, maps.followed as u32 as u64));
    code.extend([
        insn(op::LOAD_32, R2, R10, 4 - IDS as i16, 0),
        insn(op::LOAD_32, R3, R7, 0, 0),
        insn(op::IF_NOT_EQUAL, R2, R3, TO_END, 0),
    ]);
    code.extend(wide(R7, MAP_VALUE, maps.list as u32 as u64));
    code.extend([
        // R1 = fetch_add(&list.count, 1);
        insn(op::MOVE_VALUE, R1, 0, 0, 1),
        insn(op::ATOMIC_64, R7, R1, COUNT as i16, ADD_AND_FETCH),
        // R2 = R1 / ENTRIES << 48;
        insn(op::MOVE, R2, R1, 0, 0),
        insn(op::SHIFT_RIGHT_VALUE, R2, 0, 0, ENTRIES.trailing_zeros() as i32),
        insn(op::SHIFT_LEFT_VALUE, R2, 0, 0, ADDRESS_BITS as i32),
        // R6 = R6 << 16 >> 16 | R2;
        insn(op::SHIFT_LEFT_VALUE, R6, 0, 0, 64 - ADDRESS_BITS as i32),
        insn(op::SHIFT_RIGHT_VALUE, R6, 0, 0, 64 - ADDRESS_BITS as i32),
        insn(op::OR, R6, R2, 0, 0),
        insn(op::AND_VALUE, R1, 0, 0, ENTRIES as i32 - 1),
        // R1 %= ENTRIES; list.addresses[R1] = R6;
        insn(op::SHIFT_LEFT_VALUE, R1, 0, 0, 3),
        insn(op::ADD, R7, R1, 0, 0),
        insn(op::STORE_64, R7, R6, ADDRESSES as i16, 0),
        insn(op::MOVE_VALUE, R0, 0, 0, 0),
        insn(op::EXIT, 0, 0, 0, 0),
    ]);
    let end = code.len() - 2;
    for (at, instruction) in code.iter_mut().enumerate() {
        if instruction.offset == TO_END {
            instruction.offset = (end - at - 1) as i16;
        }
    }
    code
}

/// Stands for a jump to the end until that is known.
const TO_END: i16 = i16::MAX;

const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: from << 4 | to, offset, immediate }
}

/// A load of 64 bits takes the room of two instructions.
fn wide(to: u8, kind: u8, value: u64) -> [Instruction; 2] {
    [insn(op::WIDE, to, kind, 0, value as i32), insn(0, 0, 0, 0, (value >> 32) as i32)]
}
