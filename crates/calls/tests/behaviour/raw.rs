//! System calls without a C library.

use std::arch::asm;

/// Makes a system call. The result is the kernel's: negative error numbers from -4095.
///
/// # Safety
/// The call must not break this process: pointers in `args` must be null or point to memory that the kernel may use as
/// the call says.
pub unsafe fn syscall(nr: u64, args: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the kernel keeps every register but rax, rcx and r11; the caller answers for the memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// A call by its name: number and arguments, the rest 0.
pub fn call(name: &str, args: &[u64]) -> (u64, [u64; 6]) {
    let row = outlast_calls::TABLE.iter().flatten().find(|row| row.name == name).expect("a known name");
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    (u64::from(row.nr), all)
}

/// Makes a system call by name.
pub fn make<const N: usize>(name: &str, args: [u64; N]) -> i64 {
    let (nr, args) = call(name, &args);
    // SAFETY: the probes pass descriptors, sizes and addresses inside the arena.
    unsafe { syscall(nr, args) }
}

/// Makes a system call by name and expects success.
pub fn must<const N: usize>(name: &str, args: [u64; N]) -> u64 {
    let result = make(name, args);
    u64::try_from(result).unwrap_or_else(|_| panic!("{name}: error {}", -result))
}
