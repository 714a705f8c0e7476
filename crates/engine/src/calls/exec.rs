//! execve: the program is replaced, and its successor is protected from its first instruction, too.

use crate::call_filters;
use crate::calls::{filters, limits, notifications};
use crate::commit::commit;
use crate::control::{control, degrade};
use crate::dispatch::{native, wait_for, Call, Outcome};
use crate::inputs;
use crate::replies;
use crate::signals::{block_all, set_kernel_mask};
use crate::state::Engine;
use crate::sys::{err, futex_wait, futex_wake, nr, syscall};
use crate::thread::{pending_bit, Thread};
use core::sync::atomic::Ordering::*;
use outlast_image::context::pending_kind;
use outlast_image::control::{exec_answer, exec_request, state, Control};
use outlast_image::degradation::Degradation;

/// How long the engine waits for a supervisor to take hold of it before it goes on without.
const PATIENCE_NS: u64 = 2_000_000_000;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    if let Some(r) = cannot_run(call) {
        return Outcome::Return(r);
    }
    if !call_filters::hand_over() {
        return Outcome::Return(filters::leave(t, call));
    }
    // The new image would inherit the mask under which a signal waits for the gate's exit, and the signal would be lost.
    block_all();
    if has_signal(t) {
        return first_the_signal(t, call);
    }
    inputs::leave(e);
    replies::leave();
    commit(e, call.pending(pending_kind::EXEC));
    let r = replace(e, t, call);
    if has_signal(t) {
        return first_the_signal(t, call);
    }
    set_kernel_mask(t.mask);
    Outcome::Return(r)
}

/// Did a signal meet the engine that the program has not got yet?
fn has_signal(t: &Thread) -> bool {
    t.pending.load(Acquire) & pending_bit::SIGNAL != 0
}

/// The program gets its signal on its way out, and then makes the call again.
fn first_the_signal(t: &mut Thread, call: &Call) -> Outcome {
    t.regs.rip -= 2;
    t.regs.rax = call.nr;
    Outcome::Registers
}

/// A quick answer for a search along PATH: is there such a program at all?
pub fn cannot_run(call: &Call) -> Option<i64> {
    if call.nr != nr::EXECVE || !call_filters::permit(nr::ACCESS as u32) {
        return None;
    }
    // SAFETY: access has no effect.
    let r = unsafe { syscall!(nr::ACCESS, call.args[0], 1) };
    err::is(r).then_some(r)
}

/// Asks the supervisor to take hold of the successor, then execs. Returns only if that fails. With every signal blocked: what comes from
/// now on is pending in the new image, which gets the program's mask from the supervisor.
fn replace(e: &mut Engine, t: &Thread, call: &Call) -> i64 {
    let c = control();
    c.exec_ready.store(0, Release);
    // SAFETY: gettid has no effect.
    c.exec_tid.store(unsafe { syscall!(nr::GETTID) } as i32, Release);
    c.exec_mask.store(t.mask, Release);
    c.state.store(state::EXECING, Release);
    c.exec_request.store(exec_request::EXEC, Release);
    futex_wake(&c.exec_request);
    await_hold(c);
    notifications::leave(e);
    let r = if c.exec_ready.load(Acquire) == exec_answer::TRACED {
        limits::without_share(|| native(call))
    } else {
        // Nobody gives the new image its mask. Not made if a signal comes just then.
        set_kernel_mask(t.mask);
        limits::without_share(|| wait_for(call))
    };
    notifications::come_back(e);
    // Before the word by which the supervisor hears of it: what it wanted meanwhile it asks for then.
    c.state.store(state::PROTECTED, Release);
    c.exec_request.store(exec_request::FAILED, Release);
    futex_wake(&c.exec_request);
    r
}

/// Waits until the supervisor has taken hold of the process that has asked for it, or has said that it cannot. One that takes too long is
/// told that it is too late: whatever becomes of the process now, it is not to be brought back.
pub fn await_hold(c: &Control) {
    use exec_answer::{NONE, UNTRACED};
    while c.exec_ready.load(Acquire) == NONE {
        let r = futex_wait(&c.exec_ready, NONE, Some(PATIENCE_NS));
        if r == -110 && c.exec_ready.compare_exchange(NONE, UNTRACED, AcqRel, Acquire).is_ok() {
            degrade(Degradation::TraceForbidden);
        }
    }
}
