//! A child of vfork's or posix_spawn's: it has its parent's memory and makes its calls without protection, as far as to its execve. The
//! program that it becomes is protected from its first instruction, by a session and a store of its own.
//!
//! Its parent stands still until that program can be recovered, for the kernel and then here. A child that dies before has changed what is
//! its parent's, too: the parent goes back to the commit before its birth, and makes it once more.

use super::child_session::ChildSession;
use super::newborn::{Memory, Newborn};
use super::ready::Ready;
use super::{born, fate, forget, ring, Fate};
use crate::calls::{exec, gs, spawn};
use crate::control::die;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{err, futex_wake, nr, syscall};
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, Ordering::*};
use outlast_image::children::Child;
use outlast_image::control::{exec_request, other_state, state, Control};
use outlast_image::layout::{session, CHILD_BASE};

/// Whether there is such a child, whose session is mapped. Its parent runs no other meanwhile.
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// May the program have such a child? Its calls must trap, wherever they are made.
pub fn may_be_made() -> bool {
    !gs::are_own()
}

/// Makes the child that the commit stands before.
pub fn bear(e: &mut Engine, t: &mut Thread, call: &Call, newborn: &Newborn, child: &Child, ready: Ready) -> i64 {
    let session = match ChildSession::prepare(e, &ready, other_state::SPAWNED) {
        Ok(session) => session,
        Err(r) => {
            forget(child);
            return r;
        }
    };
    IS_THERE.store(true, Release);
    let clone = newborn.as_sibling(Memory::Shared, child.birth.as_ptr() as u64);
    let r = spawn::shared_memory_child(e, t, &clone, newborn.stack, true);
    IS_THERE.store(false, Release);
    drop(session);
    if err::is(r) {
        forget(child);
        return r;
    }
    ring();
    match fate(child) {
        Fate::Stillborn => die(),
        Fate::Lives => born(e, t, call, child, r),
    }
}

fn session_of_child() -> Option<&'static Control> {
    // SAFETY: mapped as long as there is such a child, which is who asks; all fields are atomics.
    IS_THERE.load(Acquire).then(|| unsafe { &*((CHILD_BASE + session::CONTROL) as *const Control) })
}

/// Such a child is about to become another program: the supervisor is to take hold of it. Nothing is done for another kind of child.
pub fn announce() {
    let Some(c) = session_of_child() else { return };
    c.exec_ready.store(0, Release);
    // SAFETY: gettid has no effect.
    c.exec_tid.store(unsafe { syscall!(nr::GETTID) } as i32, Release);
    c.state.store(state::EXECING, Release);
    c.exec_request.store(exec_request::EXEC, Release);
    futex_wake(&c.exec_request);
    // By its parent's table the supervisor learns of it in the first place.
    ring();
    exec::await_hold(c);
}

/// It makes another call: its last execve, if it has tried one, has failed.
pub fn is_still_here() {
    let Some(c) = session_of_child() else { return };
    if c.exec_request.load(Acquire) == exec_request::EXEC {
        c.state.store(state::STARTING, Release);
        c.exec_request.store(exec_request::FAILED, Release);
        futex_wake(&c.exec_request);
    }
}

/// The number that the program knows its parent by, if it is such a child.
pub fn parent() -> Option<i64> {
    session_of_child().map(|c| c.parent.load(Acquire).into())
}
