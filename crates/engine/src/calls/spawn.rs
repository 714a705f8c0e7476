//! Children that run unprotected (a degradation), as children of this process: all but those of [`crate::children`].

use crate::calls::birth::{self, CloneArgs, Noted, CLONE_VFORK, CLONE_VM};
use crate::calls::shared_child::{self, SHARED};
use crate::calls::thread_birth::{self, CLONE_THREAD};
use crate::calls::{gs, limits, own_faults};
use crate::children::{self, Newborn};
use crate::commit::{commit, commit_at_gate};
use crate::control::degrade;
use crate::dispatch::{native, Call, Outcome};
use crate::inputs;
use crate::mutant::without;
use crate::native;
use crate::own_descriptors;
use crate::own_files;
use crate::shared_memory;
use crate::signals;
use crate::state::Engine;
use crate::sys::load_call;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::tracker::Track;
use crate::undo;
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

global_asm!(
    ".section .text.spawn,\"ax\"",
    ".globl spawn_shared",
    // extern "C" fn spawn_shared(args: *const [u64; 7]) -> i64. The child shares our memory and must not touch this
    // stack: it goes straight to the program.
    "spawn_shared:",
    "push %rbx",
    "push %rbp",
    "push %r12",
    "push %r13",
    "push %r14",
    "push %r15",
    load_call!(),
    "syscall",
    "test %rax, %rax",
    "jz 1f",
    "pop %r15",
    "pop %r14",
    "pop %r13",
    "pop %r12",
    "pop %rbp",
    "pop %rbx",
    "ret",
    "1:",
    // rt_sigprocmask(SIG_SETMASK, &spawn_mask, NULL, 8)
    "mov $14, %eax",
    "mov $2, %edi",
    "mov %gs:{this}, %rsi",
    "lea {spawn_mask}(%rsi), %rsi",
    "xor %edx, %edx",
    "mov $8, %r10d",
    "syscall",
    "cmpl ${shared}, %gs:{native}",
    "jne 2f",
    // prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, text, its length, 0)
    "mov $157, %eax",
    "mov $59, %edi",
    "mov $1, %esi",
    "lea __text_start(%rip), %rdx",
    "lea __text_end(%rip), %r10",
    "sub %rdx, %r10",
    "xor %r8d, %r8d",
    "syscall",
    "2:",
    "mov %gs:{xsave_mask}, %eax",
    "mov %gs:{xsave_mask}+4, %edx",
    "xrstor64 %gs:{xsave}",
    "mov %gs:{r8}, %r8",
    "mov %gs:{r9}, %r9",
    "mov %gs:{r10}, %r10",
    "mov %gs:{r12}, %r12",
    "mov %gs:{r13}, %r13",
    "mov %gs:{r14}, %r14",
    "mov %gs:{r15}, %r15",
    "mov %gs:{rdi}, %rdi",
    "mov %gs:{rsi}, %rsi",
    "mov %gs:{rbp}, %rbp",
    "mov %gs:{rbx}, %rbx",
    "mov %gs:{rdx}, %rdx",
    "mov %gs:{spawn_stack}, %rsp",
    "mov %gs:{rip}, %rcx",
    "cmpl $0, {own_bases}(%rip)",
    "je 3f",
    "mov %gs:{gs_base}, %rax",
    "wrgsbase %rax",
    "3:",
    "xor %eax, %eax",
    "jmp *%rcx",
    shared = const SHARED,
    own_bases = sym gs::OWN_BASES,
    gs_base = const offset_of!(Thread, gs_base),
    native = const offset_of!(Thread, native),
    xsave_mask = const offset_of!(Thread, xsave_mask),
    xsave = const offset_of!(Thread, page.xsave),
    this = const offset_of!(Thread, this),
    spawn_mask = const offset_of!(Thread, spawn_mask),
    spawn_stack = const offset_of!(Thread, spawn_stack),
    r8 = const offset_of!(Thread, regs.r8),
    r9 = const offset_of!(Thread, regs.r9),
    r10 = const offset_of!(Thread, regs.r10),
    r12 = const offset_of!(Thread, regs.r12),
    r13 = const offset_of!(Thread, regs.r13),
    r14 = const offset_of!(Thread, regs.r14),
    r15 = const offset_of!(Thread, regs.r15),
    rdi = const offset_of!(Thread, regs.rdi),
    rsi = const offset_of!(Thread, regs.rsi),
    rbp = const offset_of!(Thread, regs.rbp),
    rbx = const offset_of!(Thread, regs.rbx),
    rdx = const offset_of!(Thread, regs.rdx),
    rip = const offset_of!(Thread, regs.rip),
    options(att_syntax),
);

extern "C" {
    fn spawn_shared(args: *const [u64; 7]) -> i64;
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    let Some(newborn) = Newborn::of(call) else { return Outcome::Return(err::EFAULT) };
    let Newborn { flags, stack, .. } = newborn;
    if flags & CLONE_THREAD != 0 {
        return thread_birth::serve(e, t, call, flags, stack);
    }
    if flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM {
        // A second thread of control in this memory: from here on the kernel serves the program directly.
        native::suspend(Degradation::Threads);
        t.regs.rip -= 2;
        t.regs.rax = call.nr;
        return Outcome::Registers;
    }
    if flags & CLONE_VM == 0 && crate::own_faults::are_left_to_others() {
        return Outcome::Return(own_faults::unprotected(e, t, call));
    }
    own_files::bearing(e, flags);
    if let Some(made) = children::make(e, t, call, &newborn) {
        return made;
    }
    let mut room = CloneArgs::default();
    let Some(noted) = Noted::new(call, &mut room) else { return Outcome::Return(err::EFAULT) };
    degrade(Degradation::Children);
    if flags & CLONE_VM == 0 {
        shared_memory::undone::release_all(e);
    }
    inputs::leave(e);
    undo::share_all(e);
    birth::expect();
    commit(e, call.pending(pending_kind::SPAWN));
    let call = &noted.call;
    let traps = e.tracker.guards_kernel_writes();
    let r = match flags & CLONE_VM {
        0 => copied_child(e, t, call, stack),
        _ => shared_memory_child(e, t, call, stack, traps),
    };
    if t.native != 0 {
        return Outcome::Registers;
    }
    born(e, t, &noted, r)
}

/// In the parent, whose call is done.
fn born(e: &mut Engine, t: &mut Thread, noted: &Noted, r: i64) -> Outcome {
    noted.tell(r);
    Outcome::Return(is_made(e, t, r))
}

/// The parent goes on.
pub fn is_made(e: &mut Engine, t: &mut Thread, r: i64) -> i64 {
    t.regs.rax = r as u64;
    commit_at_gate(e);
    r
}

/// vfork and posix_spawn: the parent is suspended until the child has exec'd or ended. `traps`: whether the child's calls do.
pub fn shared_memory_child(e: &mut Engine, t: &mut Thread, call: &Call, stack: u64, traps: bool) -> i64 {
    let a = call.args;
    let stack = if stack == 0 { t.regs.rsp } else { stack };
    let native = if traps { SHARED } else { 1 };
    shared_child::prepare(t, call, stack);
    let args = [call.nr, a[0], a[1], a[2], a[3], a[4], a[5]];
    let mask = signals::kernel_mask(t.mask);
    // What comes for the parent meanwhile waits until `native` is its own again.
    // SAFETY: the child leaves for the program's code at once and, while `native` is set, never enters the engine but
    // by a signal. It reads what is written here behind the compiler's back.
    let r = signals::blocked_in_child(|| unsafe {
        (&raw mut t.spawn_mask).write_volatile(mask);
        (&raw mut t.spawn_stack).write_volatile(stack);
        (&raw mut t.native).write_volatile(native);
        let r = limits::without_share(|| spawn_shared(&args));
        (&raw mut t.native).write_volatile(0);
        r
    });
    e.tracker.written_behind();
    r
}

fn copied_child(e: &mut Engine, t: &mut Thread, call: &Call, stack: u64) -> i64 {
    let mut call = *call;
    // The child returns here, on its copy of the engine's stack, and only then takes the stack it was given.
    match call.nr {
        nr::CLONE => call.args[1] = 0,
        nr::CLONE3 if stack != 0 => return err::ENOSYS,
        _ => {}
    }
    let r = signals::blocked_in_child(|| native(&call));
    if r == 0 {
        if !without(Mutant::ForkedKnocks) {
            // Signals, and knocks, that had come are the parent's.
            t.pending.store(0, Relaxed);
        }
        native::become_native(false);
        crate::rewrite::leave_child();
        own_descriptors::close_all(e);
        t.regs.rax = 0;
        if stack != 0 {
            t.regs.rsp = stack;
        }
    }
    r
}

/// A fork that a dead predecessor was about to make is made now, if it was not made.
pub fn again(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    if let Some(made) = children::again(e, t, call) {
        return made;
    }
    let mut room = CloneArgs::default();
    match (birth::found(), Noted::new(call, &mut room)) {
        (Some(pid), Some(noted)) => born(e, t, &noted, pid),
        _ => serve(e, t, call),
    }
}
