//! Calls of a child that shares this memory (vfork, posix_spawn), where they trap: because it is to be protected once it has become another
//! program ([`crate::children::shared`]), or because pages may be armed by a tracker that signals.
//!
//! In the latter case the child's own writes fault and are noted like the program's; its calls would fail with EFAULT where the kernel writes.
//! The handler opens what the call writes and sends the child on to a `syscall` in the engine's text, where mask, stack and registers
//! are the child's. It comes back by an address below the red zone of the child's stack, so that signals and calls of their handlers may come
//! in between.

use crate::calls::{exec, memory};
use crate::children::shared;
use crate::dispatch::Call;
use crate::frame::Ucontext;
use crate::kernel_writes;
use crate::signals::{kernel_mask, OWNED, SIGBUS, SIGSEGV, SIGSYS};
use crate::state::engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::tracker::Track;
use crate::user;
use core::arch::global_asm;
use core::mem::{offset_of, size_of};
use outlast_calls::Class;
use outlast_image::kernel::SignalAction;
use outlast_image::layout::USER_END;

/// Value of [`Thread::native`] while such a child runs.
pub const SHARED: u32 = 2;

/// Signals without which such a child cannot run.
const KEPT: [i32; 3] = [SIGSYS, SIGSEGV, SIGBUS];

/// Bytes of the child's stack that are opened at once: the kernel builds signal frames there.
const STACK_BELOW: u64 = 32 << 10;
const STACK_ABOVE: u64 = 4 << 10;

/// What the child must find again after a call that leaves no room on its stack.
#[repr(C)]
pub struct Place {
    rip: u64,
    result: u64,
    /// The mask that lets the engine's signals through.
    mask: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    r10: u64,
    /// The signals that the child has blocked.
    wanted: u64,
}

global_asm!(
    ".section .text.shared_child,\"ax\"",
    ".globl shared_call, shared_call_place, shared_exec",
    "shared_call:",
    "syscall",
    "ret $128",
    "shared_call_place:",
    "syscall",
    "jmpq *%gs:{place}+{rip}",
    // Only a failed execve comes back: the mask that was set for the new program is taken back.
    "shared_exec:",
    "syscall",
    "mov %rax, %gs:{place}+{result}",
    "mov $14, %eax",
    "mov $2, %edi",
    "mov %gs:{this}, %rsi",
    "lea {place}+{mask}(%rsi), %rsi",
    "xor %edx, %edx",
    "mov $8, %r10d",
    "syscall",
    "mov %gs:{place}+{rdi}, %rdi",
    "mov %gs:{place}+{rsi}, %rsi",
    "mov %gs:{place}+{rdx}, %rdx",
    "mov %gs:{place}+{r10}, %r10",
    "mov %gs:{place}+{result}, %rax",
    "jmpq *%gs:{place}+{rip}",
    this = const offset_of!(Thread, this),
    place = const offset_of!(Thread, child_place),
    rip = const offset_of!(Place, rip),
    result = const offset_of!(Place, result),
    mask = const offset_of!(Place, mask),
    rdi = const offset_of!(Place, rdi),
    rsi = const offset_of!(Place, rsi),
    rdx = const offset_of!(Place, rdx),
    r10 = const offset_of!(Place, r10),
    options(att_syntax),
);

extern "C" {
    fn shared_call();
    fn shared_call_place();
    fn shared_exec();
}

/// Before such a child is made, which is going to use `stack`.
pub fn prepare(t: &mut Thread, call: &Call, stack: u64) {
    // SAFETY: at the gate.
    let tracker = unsafe { &mut engine().tracker };
    tracker.open(stack.saturating_sub(STACK_BELOW), stack.saturating_add(STACK_ABOVE));
    kernel_writes::allow(call);
    t.child_place.wanted = t.mask;
}

/// A call of the child has trapped: it goes on where the call is made.
pub fn redirect(t: &mut Thread, uc: &mut Ucontext) {
    let r = &uc.regs;
    let call = Call { nr: r.rax, args: [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] };
    // SAFETY: the program stands still in vfork; the tracker's tables are as the memory shared with the child.
    let e = unsafe { engine() };
    shared::is_still_here();
    if e.tracker.guards_kernel_writes() {
        if outlast_calls::row(call.nr).is_some_and(|row| row.class == Class::Map) {
            uc.regs.rax = memory::serve(e, t, &call) as u64;
            return;
        }
        kernel_writes::allow(&call);
    }
    match call.nr {
        nr::GETPPID => {
            if let Some(parent) = shared::parent() {
                uc.regs.rax = parent as u64;
                return;
            }
        }
        nr::RT_SIGPROCMASK => return mask(t, uc, &call),
        nr::RT_SIGACTION if KEPT.contains(&(call.args[0] as i32)) => {
            uc.regs.rax = keep_action(&e.kernel.actions[call.args[0] as usize], &call) as u64;
            return;
        }
        nr::EXECVE | nr::EXECVEAT => {
            if let Some(r) = exec::cannot_run(&call) {
                uc.regs.rax = r as u64;
                return;
            }
            shared::announce();
            let [rdi, rsi, rdx, r10, ..] = call.args;
            t.child_place = Place { rip: r.rip, mask: uc.sigmask, rdi, rsi, rdx, r10, ..t.child_place };
            uc.sigmask = uc.sigmask & !OWNED | t.child_place.wanted & OWNED;
            uc.regs.rip = shared_exec as *const () as u64;
            return;
        }
        nr::RT_SIGRETURN => keep_engine_signals(r.rsp),
        // A child of the child has this memory as it is, or shares it without trapping.
        nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3 => e.tracker.open(0, USER_END),
        _ => {
            let sp = r.rsp.wrapping_sub(136);
            if user::write(sp, &r.rip) {
                uc.regs.rsp = sp;
                uc.regs.rip = shared_call as *const () as u64;
                return;
            }
        }
    }
    t.child_place.rip = uc.regs.rip;
    uc.regs.rip = shared_call_place as *const () as u64;
}

/// The child's exec sets the default action anyway: until then the engine needs its own.
fn keep_action(now: &SignalAction, call: &Call) -> i64 {
    let [_, new, old, ..] = call.args;
    let wrong = new != 0 && user::read::<SignalAction>(new).is_none() || old != 0 && !user::write(old, now);
    if wrong {
        err::EFAULT
    } else {
        0
    }
}

/// The child believes that it has blocked what it wanted; the engine's signals come through until it execs.
fn mask(t: &mut Thread, uc: &mut Ucontext, call: &Call) {
    let [how, new, old, ..] = call.args;
    let before = uc.sigmask & !OWNED | t.child_place.wanted & OWNED;
    let (mut wanted, mut result) = (before, 0);
    if new != 0 {
        match (user::read::<u64>(new), how) {
            (None, _) => result = err::EFAULT,
            (Some(set), 0) => wanted |= set,
            (Some(set), 1) => wanted &= !set,
            (Some(set), 2) => wanted = set,
            _ => result = err::EINVAL,
        }
    }
    if result == 0 && old != 0 && !user::write(old, &before) {
        result = err::EFAULT;
    }
    t.child_place.wanted = wanted;
    uc.sigmask = kernel_mask(wanted);
    uc.regs.rax = result as u64;
}

/// The frame that a handler returns through must not block them either.
fn keep_engine_signals(frame: u64) {
    let at = frame + size_of::<Ucontext>() as u64 - 8;
    if let Some(mask) = user::read::<u64>(at) {
        user::write(at, &kernel_mask(mask));
    }
}
