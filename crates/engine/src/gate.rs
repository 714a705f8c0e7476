//! The gate: the one way into the engine. Rewritten call sites jump here; all others arrive through SIGSYS,
//! whose handler only redirects the interrupted program to [`gate_trapped`] and returns.
//!
//! On entry `rax` holds the call's number and `rcx` the address the program goes on at; `rcx - 2` holds a
//! `syscall` instruction (the trapped site itself, or a copy in the site's stub), so that "restart" and
//! "run natively" are both a jump to `rcx - 2`. The gate may clobber `rcx`, `r11` and the arithmetic flags,
//! which a system call does not preserve for any known compiler or libc, and nothing else.
//!
//! Signals and the windows. A handler that finds the program inside the engine defers (see `signals`).
//! Two races need care, and are solved by address: between a look at `pending` and the `syscall`
//! instruction the handler moves the program back to the look (`fast_check`) or to `call_abort`; in the
//! exit window the program's whole state lies in the control block and the handler takes it from there.

use crate::sys::load_call;
use crate::thread::Thread;
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    ".section .text.gate,\"ax\"",
    // Saves everything of the program into the control block and moves to the engine's stack, without touching
    // the program's stack: its red zone lies there.
    ".macro SAVE_STATE",
    "mov %r8, %gs:{r8}",
    "mov %r9, %gs:{r9}",
    "mov %r10, %gs:{r10}",
    "mov %r11, %gs:{r11}",
    "mov %r12, %gs:{r12}",
    "mov %r13, %gs:{r13}",
    "mov %r14, %gs:{r14}",
    "mov %r15, %gs:{r15}",
    "mov %rdi, %gs:{rdi}",
    "mov %rsi, %gs:{rsi}",
    "mov %rbp, %gs:{rbp}",
    "mov %rbx, %gs:{rbx}",
    "mov %rdx, %gs:{rdx}",
    "mov %rax, %gs:{rax}",
    "mov %rcx, %gs:{rcx}",
    "movq $0x202, %gs:{eflags}",
    "movl $0, %gs:{whole}",
    "mov %gs:{stack_top}, %rsp",
    "cld",
    "mov %gs:{xsave_mask}, %eax",
    "mov %gs:{xsave_mask}+4, %edx",
    "xsaveopt64 %gs:{xsave}",
    ".endm",
    ".macro ENTER",
    "mov %rcx, %gs:{rip}",
    "mov %rsp, %gs:{rsp}",
    "mov %rax, %gs:{call}",
    "movl $0, %gs:{interrupted}",
    "incq %gs:{calls}",
    ".endm",
    ".globl gate, gate_trapped, fast_check, fast_call, fast_after, fast_exit, exit_window, exit_window_end, gate_exit",
    ".globl call_interruptible, call_check, call_syscall, call_after, call_abort, gate_leave",
    ".balign 64",
    "gate_trapped:",
    "cmpl $0, {everywhere}(%rip)",
    "jne 9f",
    "cmpl $0, %gs:{native}",
    "jne 9f",
    "movq $1, %gs:{by_trap}",
    "ENTER",
    "jmp 2f",
    ".balign 64",
    "gate:",
    "cmpl $0, {everywhere}(%rip)",
    "jne 9f",
    "cmpl $0, %gs:{native}",
    "jne 9f",
    "ENTER",
    "cmp $512, %rax",
    "jae 2f",
    "lea {class}(%rip), %r11",
    "cmpb $0, (%r11,%rax)",
    "jne 1f",
    "fast_check:",
    "cmpl $0, %gs:{pending}",
    "jne 2f",
    "fast_call:",
    "syscall",
    "fast_after:",
    "cmpl $0, %gs:{pending}",
    "jne 3f",
    "fast_exit:",
    "jmpq *%gs:{rip}",
    // A fast call came back while a signal had been deferred.
    "3:",
    "cmp $-4, %rax",
    "jne 4f",
    "movl $1, %gs:{interrupted}",
    "4:",
    "SAVE_STATE",
    "jmp exit_window",
    // Native: the program is not (or no longer) protected.
    "9:",
    "lea -2(%rcx), %rcx",
    "jmp *%rcx",
    // Reads at an offset go straight through where the kernel copies, and pins no pages.
    "1:",
    "cmpb ${by_descriptor}, (%r11,%rax)",
    "jne 2f",
    "cmp ${cached}, %rdi",
    "jae 2f",
    "lea {engine}+{kinds}(%rip), %r11",
    "testb ${copies}, (%r11,%rdi)",
    "jnz fast_check",
    // The slow way.
    "2:",
    "SAVE_STATE",
    "mov %gs:{this}, %rdi",
    "call {dispatch}",
    "jmp exit_window",
    "gate_leave:",
    "exit_window:",
    "cmpl $0, %gs:{pending}",
    "jne 5f",
    "gate_exit:",
    "cmpl $0, %gs:{whole}",
    "jne 6f",
    // What the engine has used of the vector registers: the low halves of the first sixteen, and (comparing pages)
    // the upper halves, which it leaves clear. XRSTOR of just these only if the upper halves were in use.
    "mov %gs:{xsave}+512, %eax",
    "and $0x46, %eax",
    "cmp $2, %eax",
    "jne 7f",
    "movaps %gs:{xsave}+160, %xmm0",
    "movaps %gs:{xsave}+176, %xmm1",
    "movaps %gs:{xsave}+192, %xmm2",
    "movaps %gs:{xsave}+208, %xmm3",
    "movaps %gs:{xsave}+224, %xmm4",
    "movaps %gs:{xsave}+240, %xmm5",
    "movaps %gs:{xsave}+256, %xmm6",
    "movaps %gs:{xsave}+272, %xmm7",
    "movaps %gs:{xsave}+288, %xmm8",
    "movaps %gs:{xsave}+304, %xmm9",
    "movaps %gs:{xsave}+320, %xmm10",
    "movaps %gs:{xsave}+336, %xmm11",
    "movaps %gs:{xsave}+352, %xmm12",
    "movaps %gs:{xsave}+368, %xmm13",
    "movaps %gs:{xsave}+384, %xmm14",
    "movaps %gs:{xsave}+400, %xmm15",
    "8:",
    "mov %gs:{r8}, %r8",
    "mov %gs:{r9}, %r9",
    "mov %gs:{r10}, %r10",
    "mov %gs:{r11}, %r11",
    "mov %gs:{r12}, %r12",
    "mov %gs:{r13}, %r13",
    "mov %gs:{r14}, %r14",
    "mov %gs:{r15}, %r15",
    "mov %gs:{rdi}, %rdi",
    "mov %gs:{rsi}, %rsi",
    "mov %gs:{rbp}, %rbp",
    "mov %gs:{rbx}, %rbx",
    "mov %gs:{rdx}, %rdx",
    "mov %gs:{rax}, %rax",
    "mov %gs:{rcx}, %rcx",
    "mov %gs:{rsp}, %rsp",
    "jmpq *%gs:{rip}",
    "7:",
    "mov $0x46, %eax",
    "xor %edx, %edx",
    "xrstor64 %gs:{xsave}",
    "jmp 8b",
    // Another context than the one that came in: a handler's, one that a handler returns to, a restored one.
    "6:",
    "mov %gs:{xsave_mask}, %eax",
    "mov %gs:{xsave_mask}+4, %edx",
    "xrstor64 %gs:{xsave}",
    "pushq %gs:{eflags}",
    "popfq",
    "jmp 8b",
    "exit_window_end:",
    "5:",
    "mov %gs:{stack_top}, %rsp",
    "mov %gs:{this}, %rdi",
    "call {pending_work}",
    "jmp exit_window",
    // extern "C" fn call_interruptible(args: *const [u64; 7]) -> i64
    "call_interruptible:",
    load_call!(),
    "call_check:",
    "cmpl $0, %gs:{pending}",
    "jne call_abort",
    "call_syscall:",
    "syscall",
    "call_after:",
    "ret",
    "call_abort:",
    "mov $-4, %rax",
    "ret",
    this = const offset_of!(Thread, this),
    everywhere = sym crate::native::EVERYWHERE,
    calls = const offset_of!(Thread, calls),
    by_trap = const offset_of!(Thread, by_trap),
    native = const offset_of!(Thread, native),
    pending = const offset_of!(Thread, pending),
    whole = const offset_of!(Thread, whole),
    interrupted = const offset_of!(Thread, interrupted),
    call = const offset_of!(Thread, call),
    stack_top = const offset_of!(Thread, stack_top),
    xsave_mask = const offset_of!(Thread, xsave_mask),
    xsave = const offset_of!(Thread, page.xsave),
    r8 = const offset_of!(Thread, regs.r8),
    r9 = const offset_of!(Thread, regs.r9),
    r10 = const offset_of!(Thread, regs.r10),
    r11 = const offset_of!(Thread, regs.r11),
    r12 = const offset_of!(Thread, regs.r12),
    r13 = const offset_of!(Thread, regs.r13),
    r14 = const offset_of!(Thread, regs.r14),
    r15 = const offset_of!(Thread, regs.r15),
    rdi = const offset_of!(Thread, regs.rdi),
    rsi = const offset_of!(Thread, regs.rsi),
    rbp = const offset_of!(Thread, regs.rbp),
    rbx = const offset_of!(Thread, regs.rbx),
    rdx = const offset_of!(Thread, regs.rdx),
    rax = const offset_of!(Thread, regs.rax),
    rcx = const offset_of!(Thread, regs.rcx),
    rsp = const offset_of!(Thread, regs.rsp),
    rip = const offset_of!(Thread, regs.rip),
    eflags = const offset_of!(Thread, regs.eflags),
    class = sym crate::dispatch::CLASS,
    by_descriptor = const crate::dispatch::BY_DESCRIPTOR,
    engine = sym crate::state::ENGINE,
    kinds = const offset_of!(crate::state::Engine, fds.kinds),
    cached = const crate::descriptors::CACHED,
    copies = const crate::descriptors::COPIES,
    dispatch = sym crate::dispatch::dispatch,
    pending_work = sym crate::delivery::pending_work,
    options(att_syntax),
);

extern "C" {
    fn gate();
    fn gate_leave();
}

/// Where rewritten sites go.
pub fn address() -> u64 {
    gate as *const () as u64
}

/// Leaves the engine for the program, whose whole state lies in the thread control block.
///
/// # Safety
/// The control block is installed and filled.
pub unsafe fn leave() -> ! {
    crate::control::phase(outlast_image::event::phase::PROGRAM);
    let t = crate::thread::current();
    t.whole = 1;
    let top = t.stack_top;
    core::arch::asm!("mov rsp, {}", "jmp {}", in(reg) top, in(reg) gate_leave as *const () as u64, options(noreturn));
}
