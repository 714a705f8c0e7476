//! The BPF program. Attached to the raw tracepoints page_fault_user and page_fault_kernel, whose arguments are the address, the registers
//! and the processor's error code. What each piece says in C stands above it.

use crate::bpf::assembly::{ended, insn, op, wide, ADD_AND_FETCH, MAP_VALUE, R0, R1, R10, R2, R3, R4, R6, R7, TO_END};
use crate::bpf::Instruction;
use outlast_image::fault_list::{ADDRESSES, ADDRESS_BITS, COUNT, ENTRIES};

/// X86_PF_WRITE.
const WRITE: i32 = 2;
/// Helper `bpf_get_ns_current_pid_tgid`, and the size of what it fills in: thread id, process id.
const GET_NS_CURRENT_PID_TGID: i32 = 120;
const IDS: i32 = 8;

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
    ]);
    ended(code)
}
