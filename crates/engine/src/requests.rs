//! What the supervisor asks of a running program, served at the gate.

use crate::control::control;
use crate::lag;
use crate::shared_memory;
use crate::state::{engine, Engine};
use crate::sys::futex_wake;
use crate::taking_part;
use crate::ways;
use core::sync::atomic::Ordering::*;
use outlast_image::control::request;

/// Serves all requests. The program's state is in the control block: at the gate's exit, or taken from a signal frame. True:
/// the program has a function of its own to call before the commit, with which it goes on now.
pub fn serve() -> bool {
    let c = control();
    // SAFETY: at the gate, or in the handler that saved the program's state.
    let t = unsafe { crate::thread::current() };
    crate::held::release(t);
    // SAFETY: not within another use of the engine.
    let e = unsafe { engine() };
    shared_memory::close_opened(e);
    if crate::native::is_everywhere() {
        // Another thread ends protection, and waits for this one to be out.
        return false;
    }
    let wanted = c.request.load(Acquire);
    if wanted & request::ANCHOR != 0 {
        c.request.fetch_and(!request::ANCHOR, AcqRel);
        crate::anchor::renew();
        answer();
    }
    if wanted & request::DETACH != 0 {
        let is_left = crate::native::detach(t);
        c.request.fetch_and(!request::DETACH, AcqRel);
        answer();
        if is_left {
            return false;
        }
    }
    if ways::is_due(e) {
        ways::change(e, t);
    }
    let is_due = lag::is_due(e);
    let commits = !is_due && crate::periodic::is_on(e) || wanted & request::COMMIT != 0;
    if commits && t.interrupted == 0 && taking_part::enter_before(e, t) {
        return true;
    }
    commit_now(e);
    false
}

/// Makes the commits that are asked for, or due.
pub fn commit_now(e: &mut Engine) {
    let is_for_outputs = crate::gathered::knocked(e);
    if lag::is_due(e) {
        lag::settle(e);
    } else if !is_for_outputs {
        crate::periodic::tick(e);
    }
    if control().request.load(Acquire) & request::COMMIT != 0 {
        crate::commit::commit_at_gate(e);
        control().request.fetch_and(!request::COMMIT, AcqRel);
        answer();
    }
}

fn answer() {
    control().served.fetch_add(1, AcqRel);
    futex_wake(&control().served);
}
