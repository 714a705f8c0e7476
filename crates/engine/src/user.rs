//! Access to the program's memory: a bad pointer of the program is its own EFAULT, never a crash of the engine.

use core::arch::global_asm;
use outlast_calls::Memory;

global_asm!(
    ".section .text.user,\"ax\"",
    ".globl copy_guarded, copy_guarded_end, copy_guarded_fault",
    // extern "C" fn copy_guarded(dst, src, len) -> i64: 0, or -1 after a fault.
    "copy_guarded:",
    "mov %rdx, %rcx",
    "rep movsb",
    "copy_guarded_end:",
    "xor %eax, %eax",
    "ret",
    "copy_guarded_fault:",
    "mov $-1, %rax",
    "ret",
    options(att_syntax),
);

extern "C" {
    fn copy_guarded(dst: *mut u8, src: *const u8, len: u64) -> i64;
    static copy_guarded_end: u8;
    static copy_guarded_fault: u8;
}

/// Where a fault at `rip` goes on, if it happened in the guarded copy.
pub fn fixup(rip: u64) -> Option<u64> {
    let (from, to) = (copy_guarded as *const () as u64, (&raw const copy_guarded_end) as u64);
    (rip >= from && rip < to).then_some((&raw const copy_guarded_fault) as u64)
}

/// Copies a plain value from the program.
pub fn read<T: bytemuck::Pod>(addr: u64) -> Option<T> {
    let mut v = T::zeroed();
    // SAFETY: the destination is a local of the right size; the source is guarded.
    (unsafe { copy_guarded(&raw mut v as *mut u8, addr as *const u8, core::mem::size_of::<T>() as u64) } == 0)
        .then_some(v)
}

/// Copies a plain value to the program.
pub fn write<T: bytemuck::Pod>(addr: u64, v: &T) -> bool {
    // SAFETY: the source is a value of the right size; the destination is guarded.
    unsafe { copy_guarded(addr as *mut u8, v as *const T as *const u8, core::mem::size_of::<T>() as u64) == 0 }
}

/// Copies bytes to the program.
pub fn write_bytes(addr: u64, bytes: &[u8]) -> bool {
    // SAFETY: as `write`.
    unsafe { copy_guarded(addr as *mut u8, bytes.as_ptr(), bytes.len() as u64) == 0 }
}

/// Copies bytes from the program.
pub fn read_bytes(addr: u64, bytes: &mut [u8]) -> bool {
    // SAFETY: as `read`.
    unsafe { copy_guarded(bytes.as_mut_ptr(), addr as *const u8, bytes.len() as u64) == 0 }
}

/// The program's memory, where the arguments of a call lie.
pub struct Program;

impl Memory for Program {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        read_bytes(at, into)
    }
}
