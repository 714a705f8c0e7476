//! Files whose offset, or end, several processes of a tree share: what a fork leaves open in both.
//!
//! A process that goes back puts the offset of such a file back, and tells from the file's size what it had appended: both are right only
//! if nobody else has moved them meanwhile. So who reads, writes or seeks there holds the group's lock, and commits before it lets go. Who
//! dies in between leaves the lock to its successor, which finishes the call first.

use crate::calls::offsets::is_at_offset;
use crate::calls::write_file::appends;
use crate::children;
use crate::commit::commit_at_gate;
use crate::control::control;
use crate::dispatch::Call;
use crate::shared_memory as group;
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use core::sync::atomic::Ordering::Acquire;
use outlast_calls::Class;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::descriptor::descriptor_kind as kind;

/// The engine begins, or goes on, in this process: what it has open by now others may have open as well.
pub fn begin(e: &mut Engine) {
    let c = control();
    let has_kin = [&c.parent, &c.born_as].iter().any(|number| number.load(Acquire) > 0);
    if children::are_kept() && (has_kin || c.children_used.load(Acquire) > 0) {
        e.fds.share_all();
    }
}

/// Does the call read, write or seek at an offset that others share, or append to a file that they have open?
pub fn moves(e: &mut Engine, call: &Call) -> bool {
    let fd = call.fd();
    if !e.fds.has_kin || !group::is_there() || e.fds.kind(fd) != kind::REGULAR {
        return false;
    }
    let is_at_shared = e.fds.is_shared(fd) && (call.nr == nr::LSEEK || is_at_offset(call));
    // Others may have opened the file on their own.
    is_at_shared || is_write(call) && appends(call)
}

fn is_write(call: &Call) -> bool {
    outlast_calls::row(call.nr).is_some_and(|row| row.class == Class::Output)
}

/// Makes such a call, the only one in the tree.
pub fn alone(e: &mut Engine, t: &mut Thread, make: impl FnOnce(&mut Engine, &mut Thread) -> i64) -> i64 {
    let seq = e.store().seq();
    group::header().lock(e, seq);
    let r = make(e, t);
    t.regs.rax = r as u64;
    leave(e);
    r
}

fn leave(e: &mut Engine) {
    commit_at_gate(e);
    group::header().unlock();
}

/// A call that a dead predecessor was about to make, as the commit has it: may it have been one of these? Then the lock is kept until it
/// is [`finished`].
pub fn is_one(pending: &PendingCall) -> bool {
    let call = Call { nr: pending.nr as u64, args: pending.args };
    matches!(pending.kind, pending_kind::OFFSET | pending_kind::REDO) && is_write(&call)
}

/// The call that a predecessor was about to make has been made, and nothing is left to be done about it.
pub fn finished(e: &mut Engine) {
    if group::is_there() && group::header().is_mine(e) {
        leave(e);
    }
}
