//! A few instructions that make a table of system calls in a stopped process: one stop for all of them.

use std::arch::global_asm;

/// One system call to be made in the process, in the layout that the instructions below read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Call {
    /// System call number; negative ends the table.
    pub number: i64,
    pub args: [u64; 6],
    /// Bit i: argument i is the address of a 32-bit word that holds it (a descriptor received by an earlier call).
    /// Only bits 0 and 4 are looked at: the places where descriptors are passed.
    pub indirect: u64,
    /// What the call returned. The first error ends the table.
    pub result: i64,
}

/// Makes an argument the content of a word: the first one.
pub const FIRST: u64 = 1;
/// Makes an argument the content of a word: the fifth one (mmap's descriptor).
pub const FIFTH: u64 = 1 << 4;

// rbx is the address of the next call. Ends with a breakpoint, at the end of the table as after an error.
global_asm!(
    ".pushsection .rodata",
    ".global outlast_bootstrap_start, outlast_bootstrap_end",
    "outlast_bootstrap_start:",
    "2:",
    "mov rax, [rbx]",
    "test rax, rax",
    "js 3f",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "mov r9, [rbx + 48]",
    "bt dword ptr [rbx + 56], 0",
    "jnc 4f",
    "mov edi, [rdi]",
    "4:",
    "bt dword ptr [rbx + 56], 4",
    "jnc 5f",
    "mov r8d, [r8]",
    "5:",
    "syscall",
    "mov [rbx + 64], rax",
    "add rbx, 72",
    "cmp rax, -4096",
    "jb 2b",
    "3:",
    "int3",
    ".balign 8, 0xcc",
    "outlast_bootstrap_end:",
    ".popsection",
);

/// The instructions: position independent, a whole number of 8-byte words.
pub fn code() -> &'static [u8] {
    extern "C" {
        static outlast_bootstrap_start: u8;
        static outlast_bootstrap_end: u8;
    }
    // SAFETY: both symbols are defined above, in one section, in this order; the bytes between them are constant.
    unsafe {
        let start = std::ptr::addr_of!(outlast_bootstrap_start);
        let end = std::ptr::addr_of!(outlast_bootstrap_end);
        std::slice::from_raw_parts(start, end.offset_from(start) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_layout_the_instructions_read() {
        assert_eq!(std::mem::size_of::<Call>(), 72);
        assert_eq!(std::mem::offset_of!(Call, indirect), 56);
        assert_eq!(std::mem::offset_of!(Call, result), 64);
        assert_eq!(code().len() % 8, 0);
    }
}
