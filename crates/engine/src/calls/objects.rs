//! Objects of the kernel's that calls make and change. Of System V, segments, semaphores, queues: one that nobody can find by a key
//! (IPC_PRIVATE), or of which the call must be told whether it was there (IPC_EXCL), is made once.

use crate::call_filters;
use crate::commit::{commit, commit_at_gate};
use crate::control::phase;
use crate::dispatch::{interruptible, Call};
use crate::noted::object::{self, Family};
use crate::operation::Operation;
use crate::state::Engine;
use crate::thread::Thread;
use outlast_image::context::pending_kind;
use outlast_image::event::phase as at;

const IPC_PRIVATE: u32 = 0;
const IPC_CREAT_EXCL: u64 = 0o3000;

/// Does the call make an object that nobody has yet, or fail? A filter that looks at its arguments would see others.
pub fn makes(call: &Call) -> bool {
    let Some(family) = Family::of(call.nr) else { return false };
    let is_new = call.args[0] as u32 == IPC_PRIVATE || family.flags(call) & IPC_CREAT_EXCL == IPC_CREAT_EXCL;
    is_new && !call_filters::asks(call.nr)
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    match commit(e, call.pending(pending_kind::NOTED)) {
        0 => interruptible(t, call),
        seq => finish(e, call, &mut Operation::new(seq)),
    }
}

/// Makes the object, unless a dead predecessor did.
pub fn finish(e: &mut Engine, call: &Call, operation: &mut Operation) -> i64 {
    let again = operation.is_resumed();
    let r = operation.perform(e, |_, id| object::make(id, call, again));
    if let (0.., Some(family)) = (r, Family::of(call.nr)) {
        family.settle(call, r as u64);
    }
    r
}

/// Changes an object that the anchor keeps: committed before and after, and made again only if it had not been made, or where that changes
/// nothing. `note` keeps what was changed.
pub fn change(e: &mut Engine, t: &mut Thread, call: &Call, note: fn(&mut Engine, &Call, i64)) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    phase(at::OPERATION);
    let r = interruptible(t, call);
    note(e, call, r);
    t.regs.rax = r as u64;
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}
