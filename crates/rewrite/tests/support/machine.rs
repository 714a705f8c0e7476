//! Running code from bytes, with every register under control; and a gate that only makes the call.
#![allow(dead_code)]

use outlast_rewrite::{Overwrite, Patch};
use std::sync::atomic::{AtomicU64, Ordering};

std::arch::global_asm!(
    r#"
    .pushsection .text
    // The gate of the tests: counts (threads may lose a count), makes the call, and leaves nothing as it was that it need not.
    .globl rewrite_test_gate
rewrite_test_gate:
    incq rewrite_test_calls(%rip)
    // Far below the red zone, for each thread its own; no handler runs meanwhile.
    mov %rcx, -1024(%rsp)
    syscall
    mov -1024(%rsp), %rcx
    xor $0x5a5a, %r11
    cmp %rsp, %rsp
    stc
    jmp *%rcx

    // rewrite_test_run(registers, target, low): fifteen registers but rsp, in the order rax rbx rcx rdx rsi rdi rbp r8 … r15,
    // go in and come out; then the flags; then the red zone below rsp, filled by the caller, checked by it.
    .globl rewrite_test_run
rewrite_test_run:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rdi, rewrite_test_registers(%rip)
    mov %rsi, rewrite_test_target(%rip)
    // The callee's rsp will be rsp - 8.
    lea -136(%rsp), %rax
    mov $16, %ecx
1:  mov %rcx, (%rax)
    add $8, %rax
    dec %ecx
    jnz 1b
    mov %rdi, %rax
    mov 8(%rax), %rbx; mov 16(%rax), %rcx; mov 24(%rax), %rdx; mov 32(%rax), %rsi; mov 40(%rax), %rdi
    mov 48(%rax), %rbp; mov 56(%rax), %r8; mov 64(%rax), %r9; mov 72(%rax), %r10; mov 80(%rax), %r11
    mov 88(%rax), %r12; mov 96(%rax), %r13; mov 104(%rax), %r14; mov 112(%rax), %r15
    mov (%rax), %rax
    call *rewrite_test_target(%rip)
    mov %rax, rewrite_test_target(%rip)
    mov rewrite_test_registers(%rip), %rax
    mov %rbx, 8(%rax); mov %rcx, 16(%rax); mov %rdx, 24(%rax); mov %rsi, 32(%rax); mov %rdi, 40(%rax)
    mov %rbp, 48(%rax); mov %r8, 56(%rax); mov %r9, 64(%rax); mov %r10, 72(%rax); mov %r11, 80(%rax)
    mov %r12, 88(%rax); mov %r13, 96(%rax); mov %r14, 104(%rax); mov %r15, 112(%rax)
    pushfq
    pop 120(%rax)
    mov rewrite_test_target(%rip), %rcx
    mov %rcx, (%rax)
    // How many words of the red zone are as they were.
    lea -136(%rsp), %rdx
    mov $16, %ecx
    xor %esi, %esi
2:  cmp %rcx, (%rdx)
    jne 3f
    inc %esi
3:  add $8, %rdx
    dec %ecx
    jnz 2b
    mov %rsi, 128(%rax)
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
    .popsection
    .pushsection .bss
    .globl rewrite_test_calls
    .balign 8
rewrite_test_calls: .quad 0
rewrite_test_registers: .quad 0
rewrite_test_target: .quad 0
    .popsection
    "#,
    options(att_syntax)
);

extern "C" {
    fn rewrite_test_gate();
    fn rewrite_test_run(registers: *mut State, target: u64);
    static rewrite_test_calls: AtomicU64;
}

/// Address of the gate.
pub fn gate() -> u64 {
    rewrite_test_gate as *const () as u64
}

/// How many calls went through the gate: at least, if there were several threads.
pub fn calls() -> u64 {
    // SAFETY: an aligned word of this program that is only changed atomically.
    unsafe { rewrite_test_calls.load(Ordering::SeqCst) }
}

/// What goes into a function and comes out of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    /// r8 to r15.
    pub high: [u64; 8],
    pub flags: u64,
    /// Words of the red zone that the function left alone, of 16.
    pub red_zone: u64,
}

impl State {
    /// Every register different.
    pub fn new(arguments: [u64; 3]) -> State {
        let pattern = |n: u64| n.wrapping_mul(0x0101_0101_0101_0101) ^ 0x1234_5678_9abc_def0;
        let [rdi, rsi, rdx] = arguments;
        State {
            rax: pattern(1),
            rbx: pattern(2),
            rcx: pattern(3),
            rdx,
            rsi,
            rdi,
            rbp: pattern(4),
            high: std::array::from_fn(|n| pattern(5 + n as u64)),
            flags: 0,
            red_zone: 0,
        }
    }

    /// Without what a system call overwrites, and without the arithmetic flags unless they are `wanted`.
    pub fn kept(mut self, flags: bool) -> State {
        self.rcx = 0;
        self.high[3] = 0;
        self.flags &= if flags { 0x8d5 | 0x400 } else { 0x400 };
        self
    }
}

/// Calls the function at `target` with these registers. One at a time in a process.
///
/// # Safety
/// `target` is a function that keeps rsp, and whose effects are sound with these arguments.
pub unsafe fn run(target: u64, mut state: State) -> State {
    unsafe { rewrite_test_run(&mut state, target) };
    state
}

/// Readable, writable, executable memory: this process trusts itself.
pub struct Memory {
    pub address: u64,
    pub len: usize,
}

impl Memory {
    pub fn new(len: usize) -> Memory {
        Memory::at(0, len)
    }

    /// At `address`, which must be free, or anywhere if it is 0.
    pub fn at(address: u64, len: usize) -> Memory {
        let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
        let prot = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: a new mapping touches nothing that exists.
        let place = unsafe { libc::mmap(address as *mut _, len, prot, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Memory { address: place as u64, len }
    }

    pub fn bytes(&self) -> &'static [u8] {
        // SAFETY: mapped for good; the tests write to it only through `write`.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.len) }
    }
}

/// Overwrites code, byte by byte.
///
/// # Safety
/// The memory is writable, and no thread executes the bytes.
pub unsafe fn write(address: u64, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        unsafe { (address as *mut u8).add(at).write_volatile(*byte) };
    }
}

/// Writes a stub and the jump to it.
///
/// # Safety
/// As for [`write`], of both.
pub unsafe fn apply(patch: &Patch) {
    unsafe {
        write(patch.stub_address, &patch.stub);
        overwrite(patch.overwrite());
    }
}

/// Writes if the old bytes are still there.
///
/// # Safety
/// As for [`write`].
pub unsafe fn overwrite(overwrite: &Overwrite) {
    let (at, len) = (overwrite.at(), overwrite.expected().len());
    let now = unsafe { std::slice::from_raw_parts(at as *const u8, len) };
    assert!(overwrite.still_valid(now));
    unsafe { write(at, overwrite.replacement()) };
}
