//! General registers by name.

use libc::user_regs_struct;

/// Those that a fault may hit unless others are named.
pub const GENERAL: [&str; 16] =
    ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// Number of a register: of one in [`GENERAL`], then `rip` and `eflags`.
pub fn numbered(name: &str) -> Option<usize> {
    GENERAL.iter().chain(&["rip", "eflags"]).position(|known| *known == name)
}

pub fn name(number: usize) -> &'static str {
    GENERAL.get(number).copied().unwrap_or(if number == 16 { "rip" } else { "eflags" })
}

/// The register with this number.
pub fn at(registers: &mut user_regs_struct, number: usize) -> &mut u64 {
    match number {
        0 => &mut registers.rax,
        1 => &mut registers.rbx,
        2 => &mut registers.rcx,
        3 => &mut registers.rdx,
        4 => &mut registers.rsi,
        5 => &mut registers.rdi,
        6 => &mut registers.rbp,
        7 => &mut registers.rsp,
        8 => &mut registers.r8,
        9 => &mut registers.r9,
        10 => &mut registers.r10,
        11 => &mut registers.r11,
        12 => &mut registers.r12,
        13 => &mut registers.r13,
        14 => &mut registers.r14,
        15 => &mut registers.r15,
        16 => &mut registers.rip,
        _ => &mut registers.eflags,
    }
}
