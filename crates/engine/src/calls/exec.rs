//! execve: the program is replaced, and its successor is protected from its first instruction, too.

use crate::call_filters;
use crate::calls::{filters, limits, notifications};
use crate::commit::commit;
use crate::control::{control, degrade};
use crate::dispatch::{native, Call};
use crate::inputs;
use crate::replies;
use crate::state::Engine;
use crate::sys::{err, futex_wait, futex_wake, nr, syscall};
use crate::thread::Thread;
use core::sync::atomic::Ordering::*;
use outlast_image::context::pending_kind;
use outlast_image::control::{exec_request, state, Control};
use outlast_image::degradation::Degradation;

/// How long the engine waits for a supervisor to take hold of it before it goes on without.
const PATIENCE_NS: u64 = 2_000_000_000;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if let Some(r) = cannot_run(call) {
        return r;
    }
    if !call_filters::hand_over() {
        return filters::leave(t, call);
    }
    inputs::leave(e);
    replies::leave();
    commit(e, call.pending(pending_kind::EXEC));
    replace(e, call)
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

/// Asks the supervisor to take hold of the successor, then execs. Returns only if that fails.
pub fn replace(e: &mut Engine, call: &Call) -> i64 {
    let c = control();
    c.exec_ready.store(0, Release);
    // SAFETY: gettid has no effect.
    c.exec_tid.store(unsafe { syscall!(nr::GETTID) } as i32, Release);
    c.state.store(state::EXECING, Release);
    c.exec_request.store(exec_request::EXEC, Release);
    futex_wake(&c.exec_request);
    await_hold(c);
    notifications::leave(e);
    let r = limits::without_share(|| native(call));
    notifications::come_back(e);
    // Before the word by which the supervisor hears of it: what it wanted meanwhile it asks for then.
    c.state.store(state::PROTECTED, Release);
    c.exec_request.store(exec_request::FAILED, Release);
    futex_wake(&c.exec_request);
    r
}

/// Waits until the supervisor has taken hold of the process that has asked for it, or has said that it cannot.
pub fn await_hold(c: &Control) {
    while c.exec_ready.load(Acquire) == 0 {
        let r = futex_wait(&c.exec_ready, 0, Some(PATIENCE_NS));
        if r == -110 {
            degrade(Degradation::TraceForbidden);
            break;
        }
    }
}
