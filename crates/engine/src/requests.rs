//! What the supervisor asks of a running program, served at the gate.

use crate::control::control;
use crate::state::engine;
use crate::sys::futex_wake;
use core::sync::atomic::Ordering::*;
use outlast_image::control::request;

/// Serves all requests. The program's state is in the control block: at the gate's exit, or taken from a signal frame.
pub fn serve() {
    let c = control();
    // SAFETY: at the gate, or in the handler that saved the program's state.
    crate::held::release(unsafe { crate::thread::current() });
    // SAFETY: not within another use of the engine.
    let e = unsafe { engine() };
    crate::periodic::tick(e);
    let wanted = c.request.swap(0, AcqRel);
    if wanted == 0 {
        return;
    }
    if wanted & request::ANCHOR != 0 {
        crate::anchor::renew();
    }
    if wanted & request::COMMIT != 0 {
        crate::commit::commit_at_gate(e);
    }
    c.served.fetch_add(1, AcqRel);
    futex_wake(&c.served);
}
