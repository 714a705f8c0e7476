//! The child's session, as its parent has it mapped until the child can be recovered.

use super::ready::Ready;
use crate::control::control;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::*;
use outlast_image::control::Control;
use outlast_image::inject::{mode, option, InjectArgs};
use outlast_image::layout::{session, CHILD_BASE, SESSION_LEN};

/// A mapping of it, at an address of the engine's that there is one of.
pub struct ChildSession(());

impl ChildSession {
    /// Maps it, and writes what the child's engine is to find: one of `outlast_image::control::other_state` among that.
    pub fn prepare(e: &Engine, ready: &Ready, other_state: u32) -> Result<Self, i64> {
        // SAFETY: the range is the engine's own, the descriptor a session's.
        let r = unsafe { syscall!(nr::MMAP, CHILD_BASE, SESSION_LEN, 3, 0x01 | 0x10, ready.session, 0) };
        if err::is(r) {
            return Err(r);
        }
        let args = InjectArgs {
            mode: mode::RESUME,
            session_fd: e.fds.own,
            options: e.args.options & !(option::FAULT_LIST | option::HISTORY),
            generation: 0,
            pid: 0,
            ..e.args
        };
        // SAFETY: inside the mapping; nobody uses it yet.
        unsafe { ((CHILD_BASE + session::INJECT) as *mut InjectArgs).write_volatile(args) };
        let mapped = Self(());
        let (own, c) = (control(), mapped.control());
        c.parent.store(e.kernel.pid as i32, Release);
        c.pgid.store(0, Release);
        c.degradations.store(own.degradations.load(Acquire), Release);
        c.other_state.store(other_state, Release);
        Ok(mapped)
    }

    pub fn control(&self) -> &Control {
        // SAFETY: mapped as long as this value lives; all fields are atomics.
        unsafe { &*((CHILD_BASE + session::CONTROL) as *const Control) }
    }
}

impl Drop for ChildSession {
    fn drop(&mut self) {
        // SAFETY: the mapping was made for this value.
        unsafe { syscall!(nr::MUNMAP, CHILD_BASE, SESSION_LEN) };
    }
}
