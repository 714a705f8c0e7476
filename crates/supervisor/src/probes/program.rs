//! The BPF program, which runs where a function is entered or left, with the registers at that place and a cookie. What each piece says in C
//! stands above it.

use crate::bpf::assembly::{ended, insn, op, wide, MAP, MAP_VALUE, R0, R1, R10, R2, R3, R4, R6, R7, R8, TO_END};
use crate::bpf::Instruction;
use crate::fault_list::Namespace;
use bytemuck::{Pod, Zeroable};

/// Helpers.
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const GET_NS_CURRENT_PID_TGID: i32 = 120;
const GET_ATTACH_COOKIE: i32 = 174;
/// Of the stack pointer in `struct pt_regs`.
const SP: i16 = 152;
/// On the program's stack: thread id and process id, a [`Key`], a [`Run`].
const IDS: i16 = -8;
const KEY: i16 = -16;
const RUN: i16 = -48;

/// Whose run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Key {
    pub thread: u32,
    /// Number of the section.
    pub section: u32,
}

/// How a thread stands to a section.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Run {
    /// So often it has entered it.
    pub runs: u64,
    /// 1: it is in it.
    pub is_inside: u64,
    /// Where its stack was when it entered it last.
    pub stack: u64,
    /// Where it left it last, one more than the number of the exit; 0: nowhere yet.
    pub exit: u64,
}

/// Descriptors: of the table of runs, and of the process that is followed.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    pub runs: i32,
    pub followed: i32,
}

/// What the program is told where it runs. Exit 0: at the entry.
pub fn cookie(section: u32, exit: u32) -> u64 {
    u64::from(section) << 32 | u64::from(exit)
}

/// The instructions, for processes numbered as in `namespace`.
pub fn program(maps: Maps, namespace: Namespace) -> Vec<Instruction> {
    let address = |to, of: i16| [insn(op::MOVE, to, R10, 0, 0), insn(op::ADD_VALUE, to, 0, 0, of.into())];
    let runs = wide(R1, MAP, maps.runs as u32 as u64);
    // R7 = get_attach_cookie(context);
    let mut code =
        vec![insn(op::MOVE, R6, R1, 0, 0), insn(op::CALL, 0, 0, 0, GET_ATTACH_COOKIE), insn(op::MOVE, R7, R0, 0, 0)];
    // if (get_ns_current_pid_tgid(device, inode, &ids, sizeof ids)) return 0;
    code.extend(wide(R1, 0, namespace.device));
    code.extend(wide(R2, 0, namespace.inode));
    code.extend(address(R3, IDS));
    code.extend([
        insn(op::MOVE_VALUE, R4, 0, 0, 8),
        insn(op::CALL, 0, 0, 0, GET_NS_CURRENT_PID_TGID),
        insn(op::IF_NOT_EQUAL_VALUE, R0, 0, TO_END, 0),
    ]);
    // if (ids.process != followed) return 0;
    code.extend(wide(R1, MAP_VALUE, maps.followed as u32 as u64));
    code.extend([
        insn(op::LOAD_32, R2, R10, IDS + 4, 0),
        insn(op::LOAD_32, R3, R1, 0, 0),
        insn(op::IF_NOT_EQUAL, R2, R3, TO_END, 0),
        // key = {ids.thread, cookie >> 32};
        insn(op::LOAD_32, R2, R10, IDS, 0),
        insn(op::STORE_32, R10, R2, KEY, 0),
        insn(op::MOVE, R2, R7, 0, 0),
        insn(op::SHIFT_RIGHT_VALUE, R2, 0, 0, 32),
        insn(op::STORE_32, R10, R2, KEY + 4, 0),
    ]);
    // R0 = map_lookup_elem(runs, &key);
    code.extend(runs);
    code.extend(address(R2, KEY));
    code.push(insn(op::CALL, 0, 0, 0, MAP_LOOKUP));
    // if (!R0) { run = {0}; map_update_elem(runs, &key, &run, 0); R0 = map_lookup_elem(runs, &key); if (!R0) return 0; }
    let mut absent: Vec<Instruction> = (0..4).map(|n| insn(op::STORE_VALUE_64, R10, 0, RUN + 8 * n, 0)).collect();
    absent.extend(runs);
    absent.extend(address(R2, KEY));
    absent.extend(address(R3, RUN));
    absent.extend([insn(op::MOVE_VALUE, R4, 0, 0, 0), insn(op::CALL, 0, 0, 0, MAP_UPDATE)]);
    absent.extend(runs);
    absent.extend(address(R2, KEY));
    absent.extend([insn(op::CALL, 0, 0, 0, MAP_LOOKUP), insn(op::IF_EQUAL_VALUE, R0, 0, TO_END, 0)]);
    code.push(insn(op::IF_NOT_EQUAL_VALUE, R0, 0, absent.len() as i16, 0));
    code.extend(absent);
    let entry = [
        // At the entry: if (run.is_inside && sp < run.stack) return 0, for it calls itself;
        insn(op::IF_EQUAL_VALUE, R2, 0, 1, 0),
        insn(op::IF_LESS, R8, R3, TO_END, 0),
        // run.runs++; run.stack = sp; run.is_inside = 1; return 0;
        insn(op::LOAD_64, R2, R0, 0, 0),
        insn(op::ADD_VALUE, R2, 0, 0, 1),
        insn(op::STORE_64, R0, R2, 0, 0),
        insn(op::STORE_64, R0, R8, 16, 0),
        insn(op::STORE_VALUE_64, R0, 0, 8, 1),
        insn(op::JUMP, 0, 0, TO_END, 0),
    ];
    code.extend([
        // R8 = context->sp; R7 = (u32) R7;
        insn(op::LOAD_64, R8, R6, SP, 0),
        insn(op::SHIFT_LEFT_VALUE, R7, 0, 0, 32),
        insn(op::SHIFT_RIGHT_VALUE, R7, 0, 0, 32),
        insn(op::LOAD_64, R2, R0, 8, 0),
        insn(op::LOAD_64, R3, R0, 16, 0),
        insn(op::IF_NOT_EQUAL_VALUE, R7, 0, entry.len() as i16, 0),
    ]);
    code.extend(entry);
    code.extend([
        // At an exit: if (!run.is_inside || sp < run.stack) return 0; run.is_inside = 0; run.exit = R7;
        insn(op::IF_EQUAL_VALUE, R2, 0, TO_END, 0),
        insn(op::IF_LESS, R8, R3, TO_END, 0),
        insn(op::STORE_VALUE_64, R0, 0, 8, 0),
        insn(op::STORE_64, R0, R7, 24, 0),
    ]);
    ended(code)
}
