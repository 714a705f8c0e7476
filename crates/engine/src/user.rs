//! Access to the program's memory: a bad pointer of the program is its own EFAULT, never a crash of the engine. So is a page that the
//! program itself would have to bring.

use crate::own_faults;
use crate::shared_memory;
use core::arch::global_asm;
use outlast_calls::Memory;

global_asm!(
    ".section .text.user,\"ax\"",
    ".globl copy_guarded, swap_guarded, guarded_end, guarded_fault",
    // extern "C" fn copy_guarded(dst, src, len) -> i64: 0, or -1 after a fault.
    "copy_guarded:",
    "mov %rdx, %rcx",
    "rep movsb",
    "xor %eax, %eax",
    "ret",
    // extern "C" fn swap_guarded(at, expected, new) -> i64: 0, 1 if another value is there, or -1 after a fault.
    "swap_guarded:",
    "mov %esi, %eax",
    "lock cmpxchg %edx, (%rdi)",
    "guarded_end:",
    "setne %al",
    "movzbl %al, %eax",
    "ret",
    "guarded_fault:",
    "mov $-1, %rax",
    "ret",
    options(att_syntax),
);

extern "C" {
    fn copy_guarded(dst: *mut u8, src: *const u8, len: u64) -> i64;
    fn swap_guarded(at: *mut u32, expected: u32, new: u32) -> i64;
    static guarded_end: u8;
    static guarded_fault: u8;
}

/// Where a fault at `rip` goes on, if it happened in a guarded access.
pub fn fixup(rip: u64) -> Option<u64> {
    let (from, to) = (copy_guarded as *const () as u64, (&raw const guarded_end) as u64);
    (rip >= from && rip < to).then_some((&raw const guarded_fault) as u64)
}

/// Copies a plain value from the program.
pub fn read<T: bytemuck::Pod>(addr: u64) -> Option<T> {
    if !own_faults::may_read(addr, core::mem::size_of::<T>() as u64) {
        return None;
    }
    let mut v = T::zeroed();
    // SAFETY: the destination is a local of the right size; the source is guarded.
    (unsafe { copy_guarded(&raw mut v as *mut u8, addr as *const u8, core::mem::size_of::<T>() as u64) } == 0)
        .then_some(v)
}

/// Can the engine write there, or has what is there been noted if need be?
fn may_write(addr: u64, len: u64) -> bool {
    shared_memory::undone::writing(addr, len);
    own_faults::may_write(addr, len)
}

/// Copies a plain value to the program.
pub fn write<T: bytemuck::Pod>(addr: u64, v: &T) -> bool {
    // SAFETY: the source is a value of the right size; the destination is guarded.
    may_write(addr, core::mem::size_of::<T>() as u64)
        && unsafe { copy_guarded(addr as *mut u8, v as *const T as *const u8, core::mem::size_of::<T>() as u64) == 0 }
}

/// Exchanges a word of the program's, atomically, if it has the expected value: whether it had.
pub fn swap(at: u64, expected: u32, new: u32) -> Option<bool> {
    if !may_write(at, 4) {
        return None;
    }
    // SAFETY: the access is guarded.
    match unsafe { swap_guarded(at as *mut u32, expected, new) } {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    }
}

/// Copies bytes to the program.
pub fn write_bytes(addr: u64, bytes: &[u8]) -> bool {
    // SAFETY: as `write`.
    may_write(addr, bytes.len() as u64)
        && unsafe { copy_guarded(addr as *mut u8, bytes.as_ptr(), bytes.len() as u64) == 0 }
}

/// Copies bytes from the program.
pub fn read_bytes(addr: u64, bytes: &mut [u8]) -> bool {
    // SAFETY: as `read`.
    own_faults::may_read(addr, bytes.len() as u64)
        && unsafe { copy_guarded(bytes.as_mut_ptr(), addr as *const u8, bytes.len() as u64) == 0 }
}

/// Copies a path; its length without the NUL. `None`: it is empty, does not fit, or cannot be read.
pub fn read_path(at: u64, to: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    while len < to.len() {
        // Not beyond the page in which the path may end.
        let step = (4096 - (at + len as u64) as usize % 4096).min(to.len() - len);
        let part = &mut to[len..len + step];
        if !read_bytes(at + len as u64, part) {
            return None;
        }
        if let Some(end) = part.iter().position(|&b| b == 0) {
            return Some(len + end).filter(|&n| n > 0);
        }
        len += step;
    }
    None
}

/// Can a page be read that is there?
pub fn is_readable(page: u64) -> bool {
    let mut byte = 0u8;
    // SAFETY: as `read`.
    unsafe { copy_guarded(&raw mut byte, page as *const u8, 1) == 0 }
}

/// Writes what is there already, and has the program bring the page for it, or let it be written.
pub fn touch(page: u64) {
    // SAFETY: as `swap`.
    unsafe { swap_guarded(page as *mut u32, 0, 0) };
}

/// The program's memory, where the arguments of a call lie.
pub struct Program;

impl Memory for Program {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        read_bytes(at, into)
    }
}
