//! Watches of inotify. They live in the kernel's object, which the anchor keeps: a change is committed before and after. To add one again
//! that was added changes nothing.

use crate::commit::{commit, commit_at_gate};
use crate::control::phase;
use crate::dispatch::{interruptible, Call};
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use crate::unnamed::watches;
use outlast_image::context::pending_kind;
use outlast_image::event::phase as at;

/// inotify_add_watch and inotify_rm_watch.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    phase(at::OPERATION);
    let r = interruptible(t, call);
    note(e, call, r);
    t.regs.rax = r as u64;
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}

/// The call was made, perhaps once more after a dead predecessor had made it.
pub fn note(e: &mut Engine, call: &Call, r: i64) {
    let [fd, what, mask, ..] = call.args;
    match call.nr {
        nr::INOTIFY_ADD_WATCH if r >= 0 => watches::added(e, fd as i32, what, mask as u32, r as i32),
        nr::INOTIFY_RM_WATCH if r == 0 => watches::removed(e, fd as i32, what as i32),
        _ => {}
    }
}
