//! Signals reach the program: noted as taken, and delivered on the way out of the gate if they met the engine.

use crate::calls::{notifications, posix_timers, processor_timers, timers};
use crate::children::sending;
use crate::control::{control, phase};
use crate::dispatch::{wait_for, Call};
use crate::frame::{self, Signal, Vector, SA_NODEFER, SA_RESETHAND};
use crate::in_hand;
use crate::interrupted;
use crate::signals::{
    apply, bit, block_all, kernel_mask_now, set_kernel_mask, signal_code, FATAL, SIGKILL, SIGSEGV, SIGSTOP,
};
use crate::signals::{SIG_DFL, SIG_IGN};
use crate::state::{engine, Engine};
use crate::sys::{err, nr, syscall};
use crate::taking_part;
use crate::thread::{pending_bit, standing, Thread};
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::event::phase as at;
use outlast_image::kernel::SignalAction;

const SIG_SETMASK: u64 = 2;

/// Did the program send it to itself? Such a signal is not an input: the program sends it again.
pub fn is_own(e: &Engine, info: &[u64; 16]) -> bool {
    let sender = info[2] as u32;
    // SAFETY: getpid has no effect.
    signal_code(info) <= 0
        && !posix_timers::makes(info)
        && !notifications::makes(info)
        && (sender == e.kernel.pid || sender == unsafe { syscall!(nr::GETPID) } as u32)
}

/// A signal that the program sent to itself tells of the process id that the program knows, one of a timer of the timer.
pub fn renumber(info: &mut [u64; 16]) {
    if posix_timers::makes(info) {
        return posix_timers::renumber(info);
    }
    // SAFETY: at the gate, or in a handler that has the lock; getpid has no effect.
    let (known, real) = unsafe { (engine().kernel.pid, syscall!(nr::GETPID) as u32) };
    if signal_code(info) <= 0 && info[2] as u32 == real {
        info[2] = info[2] & !0xffff_ffff | known as u64;
    } else if signal_code(info) <= 0 && !notifications::makes(info) {
        info[2] = info[2] & !0xffff_ffff | sending::sender(info[2] as i32) as u32 as u64;
    }
}

/// Does a timer of the process make it? The restored timer does so again.
pub fn is_timer(info: &[u64; 16]) -> bool {
    info[0] as i32 == timers::SIGALRM && signal_code(info) == 0x80
        || posix_timers::makes(info)
        || processor_timers::makes(info)
}

/// Is it one that a bug causes? The answer to it is the rollback.
pub fn is_failure(info: &[u64; 16]) -> bool {
    FATAL & bit(info[0] as i32) != 0
}

/// Does it come again by itself, or for the program's doing it again?
pub fn repeats_itself(e: &Engine, info: &[u64; 16]) -> bool {
    is_own(e, info) || is_timer(info) || notifications::makes(info)
}

/// A delivered signal is an input: it comes again if the program is rolled back past its delivery.
pub fn note_taken(t: &Thread, info: &[u64; 16]) {
    // SAFETY: called outside the store's own code: the program was in its own code, or at the gate's exit.
    let e = unsafe { engine() };
    let repeats_itself = repeats_itself(e, info);
    if posix_timers::makes(info) {
        posix_timers::delivered(e, info);
    } else if processor_timers::makes(info) {
        processor_timers::delivered(e, info[0] as i32);
    } else if is_timer(info) {
        timers::delivered(e);
    } else if notifications::makes(info) {
        notifications::delivered(e, info);
    }
    if is_own(e, info) {
        e.queue.take(info, t.place);
        if !e.queue.has(info[0] as i32) {
            control().sent.fetch_and(!bit(info[0] as i32), Relaxed);
        }
    }
    if !repeats_itself {
        in_hand::note(e, t.place, info);
    }
    in_hand::let_go(t);
}

pub fn enter_handler(t: &mut Thread, sig: i32, action: &SignalAction) {
    t.countdown.forget();
    t.mask |= action.mask;
    if action.flags & SA_NODEFER == 0 {
        t.mask |= bit(sig);
    }
    t.mask &= !(bit(SIGKILL) | bit(SIGSTOP));
    if action.flags & SA_RESETHAND != 0 {
        // SAFETY: as `note_taken`.
        let e = unsafe { engine() };
        e.kernel.actions[sig as usize] = SignalAction::default();
        e.kernel_dirty = true;
        apply(sig, &SignalAction::default());
    }
}

/// The thread has another mask from now on. At the gate.
pub fn change_mask(e: &Engine, t: &mut Thread) {
    let mask = kernel_mask_now(t.mask);
    let set = Call { nr: nr::RT_SIGPROCMASK, args: [SIG_SETMASK, (&raw const mask) as u64, 0, 8, 0, 0] };
    // Not made if something is pending or comes just then: there is one place for a signal that met the engine, and until
    // that is delivered no other may come.
    if wait_for(&set) != err::EINTR {
        return;
    }
    t.unbegun = 0;
    block_all();
    if t.pending.load(Acquire) & pending_bit::SIGNAL == 0 {
        set_kernel_mask(t.mask);
    } else if t.mask & bit(t.siginfo[0] as i32) != 0 {
        // It came before the call that blocks it, but nobody may see that: it waits where it would.
        t.pending.fetch_and(!pending_bit::SIGNAL, AcqRel);
        e.queue.put_back(&t.siginfo, t);
        in_hand::let_go(t);
        set_kernel_mask(t.mask);
    }
}

/// What the gate does on its way out when something is pending: serves requests, delivers the deferred signal.
/// All signals are blocked in the kernel if one was deferred.
pub unsafe extern "C" fn pending_work(t: &mut Thread) {
    if !world::has_several() {
        return pending_work_alone(t);
    }
    if t.standing.load(Relaxed) == standing::RUNNING {
        let ended = t.interrupted != 0 && t.regs.rax as i64 == err::EINTR;
        world::arrive(t, if ended { standing::IN_CALL } else { standing::AT_REST });
    }
    world::lock(t);
    pending_work_alone(t);
    // A commit may have come while it waited for the lock, and another one may come before it is gone.
    t.is_fresh = true;
    if t.interrupted == 0 {
        t.standing.store(standing::AT_REST, Release);
    }
    // Who has left the program alone has given it back.
    if t.has_lock {
        world::unlock(t);
    }
    if t.pending.load(Acquire) == 0 {
        world::depart(t);
    }
}

unsafe fn pending_work_alone(t: &mut Thread) {
    phase(at::SIGNAL);
    let bits = t.pending.load(Acquire);
    // The kernel has it no more: a commit that is asked for must find it delivered.
    while t.pending.load(Acquire) & pending_bit::SIGNAL != 0 {
        t.pending.fetch_and(!pending_bit::SIGNAL, AcqRel);
        deliver(t);
    }
    if bits & pending_bit::STOP != 0 {
        // Whoever knocked has its turn while this thread waits for the lock.
        t.pending.fetch_and(!pending_bit::STOP, AcqRel);
        make_call_again(t);
    }
    if bits & pending_bit::RECOVERED != 0 {
        t.pending.fetch_and(!pending_bit::RECOVERED, AcqRel);
        make_call_again(t);
        if t.pending.load(Acquire) & pending_bit::SIGNAL == 0 {
            taking_part::tell_of_recovery(engine(), t);
        } else {
            // It settles what becomes of the call.
            t.pending.fetch_or(pending_bit::RECOVERED, AcqRel);
        }
    }
    if bits & pending_bit::REQUEST != 0 {
        t.pending.fetch_and(!pending_bit::REQUEST, AcqRel);
        make_call_again(t);
        crate::requests::serve();
    }
    phase(at::PROGRAM);
}

/// Where the engine alone ended a call, the program must not notice: the call is issued again, and a commit that is asked
/// for stands before it.
fn make_call_again(t: &mut Thread) {
    if t.pending.load(Acquire) & pending_bit::SIGNAL == 0 && t.interrupted != 0 && t.regs.rax as i64 == err::EINTR {
        let mut regs = t.regs;
        interrupted::issue_again(t, &mut regs);
        t.regs = regs;
    }
}

/// The program is to be given this signal on its way out. All are blocked in the kernel, and none waits to be delivered.
pub fn defer(t: &mut Thread, info: &[u64; 16]) {
    t.siginfo = *info;
    t.pending.fetch_or(pending_bit::SIGNAL, Release);
}

unsafe fn deliver(t: &mut Thread) {
    let mut info = t.siginfo;
    let sig = info[0] as i32;
    let e = engine();
    let action = e.kernel.actions[sig as usize];
    if action.handler == SIG_IGN {
        in_hand::let_go(t);
        set_kernel_mask(t.mask);
        return;
    }
    if action.handler == SIG_DFL {
        if FATAL & bit(sig) != 0 {
            crate::failure::fatal_at_gate(sig, &info, t);
        }
        // The disposition changed since: let the kernel do what it now is.
        let (pid, tid) = (syscall!(nr::GETPID), syscall!(nr::GETTID));
        apply(sig, &action);
        set_kernel_mask(t.mask);
        syscall!(nr::RT_TGSIGQUEUEINFO, pid, tid, sig, info.as_ptr());
        in_hand::let_go(t);
        return;
    }
    note_taken(t, &info);
    renumber(&mut info);
    let mut regs = t.regs;
    let mask = t.mask;
    interrupted::settle(t, &mut regs, sig, &action);
    let signal = Signal { info: &info, action: &action, fault: [0; 3] };
    match frame::build(t, &regs, Vector::Saved, mask, &signal) {
        Some(new) => {
            t.regs = new;
            frame::reset_vector(&mut t.page.xsave.0);
            t.whole = 1;
            enter_handler(t, sig, &action);
        }
        None => crate::failure::fatal_at_gate(SIGSEGV, &info, t),
    }
    set_kernel_mask(t.mask);
}
