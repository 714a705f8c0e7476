//! The way to outlast: prctl with an option that no kernel knows, which fails with EINVAL where outlast is not at the gate.

/// What is asked.
pub mod question {
    pub const COMMITS: usize = 0;
    pub const RECOVERIES: usize = 1;
    pub const DEGRADATIONS: usize = 2;
    pub const LAST: usize = 3;
    pub const COMMIT: usize = 4;
    pub const BEFORE_COMMIT: usize = 5;
    pub const AFTER_RECOVERY: usize = 6;
    #[cfg(feature = "std")]
    pub const SECTIONS: usize = 8;
}

/// Asks; below 0 if nobody answers. A function is followed by its argument and has where to return to.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn ask(what: usize, function: usize, argument: usize) -> i64 {
    const PRCTL: i64 = 157;
    const OPTION: u64 = u32::from_le_bytes(*b"Outl") as u64;
    let answer;
    // SAFETY: a kernel refuses the option; outlast reads no memory for it, and has a function called only where the caller
    // of this crate vouches for that.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") PRCTL => answer,
            in("rdi") OPTION,
            in("rsi") what,
            in("rdx") function,
            in("r10") argument,
            in("r8") outlast_api_return as *const () as usize,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
core::arch::global_asm!(
    // Where the program's functions return to: outlast takes the thread back to where it was, or else the kernel does.
    ".section .text.outlast_api_return,\"ax\",@progbits",
    ".hidden outlast_api_return",
    ".globl outlast_api_return",
    "outlast_api_return:",
    "mov eax, 157",
    "mov edi, 0x6c74754f",
    "mov esi, 7",
    "syscall",
    "mov eax, 15",
    "syscall",
    "hlt",
    ".text",
);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
extern "C" {
    fn outlast_api_return();
}

/// Nobody answers.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn ask(_what: usize, _function: usize, _argument: usize) -> i64 {
    -22
}
