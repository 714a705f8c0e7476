//! Objects of System V that a call makes: segments, semaphores, queues. One that nobody can find by a key (IPC_PRIVATE), or of which
//! the call must be told whether it was there (IPC_EXCL), is made once.

use crate::call_filters;
use crate::commit::commit;
use crate::dispatch::{interruptible, Call};
use crate::noted::object::{self, Family};
use crate::operation::Operation;
use crate::state::Engine;
use crate::thread::Thread;
use outlast_image::context::pending_kind;

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
