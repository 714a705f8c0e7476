//! Watches of inotify. They live in the kernel's object, which the anchor keeps: a change is committed before and after. To add one again
//! that was added changes nothing.

use crate::calls::objects;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use crate::unnamed::watches;

/// inotify_add_watch and inotify_rm_watch.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    objects::change(e, t, call, note)
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
