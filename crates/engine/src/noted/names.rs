//! Calls that make, remove and move names, and give sockets addresses and peers: what the ring has no operation for, or
//! all of them where there is no ring.

use super::note::{how, note};
use super::{descriptor, witness};
use crate::commit::commit;
use crate::dispatch::{interruptible, issue, visible, Call};
use crate::operation::Operation;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use core::sync::atomic::Ordering::*;
use outlast_calls::{again, row, Witness};
use outlast_image::context::pending_kind;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if !makes_descriptor(call) && !witness::can_tell(call, witness_of(call)) {
        return visible(e, t, call);
    }
    let seq = commit(e, call.pending(pending_kind::NOTED));
    if seq == 0 {
        return interruptible(t, call);
    }
    finish(e, t, call, &mut Operation::new(seq))
}

/// Does what the commit stands before, unless a dead predecessor did.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    loop {
        let r = operation.perform(e, |e, id| note().close(make(e, id, call)));
        if r == err::EINTR {
            if t.pending.load(Acquire) != 0 {
                t.interrupted = 1;
                return r;
            }
            continue;
        }
        if makes_descriptor(call) {
            e.fds.opened(r);
        }
        return r;
    }
}

fn makes_descriptor(call: &Call) -> bool {
    matches!(call.nr, nr::OPEN | nr::OPENAT | nr::OPENAT2 | nr::CREAT)
}

fn witness_of(call: &Call) -> Witness {
    again(call.nr, &call.args).unwrap_or_else(|| row(call.nr).map_or(Witness::None, |r| r.witness))
}

fn make(e: &mut Engine, id: u64, call: &Call) -> i64 {
    if makes_descriptor(call) {
        return descriptor::make(e, id, call);
    }
    let witness = witness_of(call);
    let again = note().tells(id, how::WITNESS);
    if again {
        if witness::happened(call, witness) {
            return 0;
        }
    } else {
        note().begin(how::WITNESS, call.fd());
        witness::note_before(call, witness);
        note().arm(id);
    }
    match issue(call) {
        // The connection that a predecessor began is still coming about.
        err::EALREADY if again && call.nr == nr::CONNECT => err::EINPROGRESS,
        r => r,
    }
}
