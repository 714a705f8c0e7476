//! Outputs that another thread can make: the call as it is, once, without waiting.

use super::message::{Header, Vectors};
use crate::dispatch::Call;
use crate::ring::{op, Entry};
use crate::sys::nr;
use crate::user;

const MSG_DONTWAIT: u64 = 0x40;
const MSG_NOSIGNAL: u64 = 0x4000;
const MSG_MORE: u64 = 0x8000;
const RWF_NOWAIT: u32 = 8;
/// Bytes that one call moves at most.
const MOST: u64 = 0x7fff_f000;

/// Is it one? What its descriptor is shows later.
pub fn may_join(call: &Call) -> bool {
    let a = &call.args;
    match call.nr {
        nr::WRITE => a[2] <= MOST,
        nr::WRITEV => true,
        nr::SENDTO => a[4] == 0 && a[2] <= MOST && are_simple(a[3]),
        nr::SENDMSG => are_simple(a[2]),
        _ => false,
    }
}

fn are_simple(flags: u64) -> bool {
    flags & !(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) == 0
}

/// The ring's entry for it, without an identifier. What pointers point at the kernel reads from the program's memory.
pub fn entry(call: &Call) -> Entry {
    let a = &call.args;
    let (opcode, addr, len, off, op_flags) = match call.nr {
        nr::WRITEV => (op::WRITEV, a[1], a[2], !0, RWF_NOWAIT),
        nr::SENDTO => (op::SEND, a[1], a[2], 0, (a[3] | MSG_DONTWAIT) as u32),
        nr::SENDMSG => (op::SENDMSG, a[1], 1, 0, (a[2] | MSG_DONTWAIT) as u32),
        _ => (op::WRITE, a[1], a[2], !0, RWF_NOWAIT),
    };
    Entry { opcode, fd: call.fd(), addr, len: len as u32, off, op_flags, ..Default::default() }
}

/// How many bytes it is to send; `None` if the program's memory does not tell.
pub fn total(call: &Call) -> Option<u64> {
    let a = &call.args;
    match call.nr {
        nr::WRITEV => Vectors::new(a[1], a[2]).map(|v| v.total.min(MOST)),
        nr::SENDMSG => {
            let header: Header = user::read(a[1])?;
            Vectors::new(header.vectors, header.count).map(|v| v.total)
        }
        _ => Some(a[2]),
    }
}

/// Is it content with less than all?
pub fn wants_no_more(call: &Call) -> bool {
    let flags = match call.nr {
        nr::SENDTO => call.args[3],
        nr::SENDMSG => call.args[2],
        _ => 0,
    };
    flags & MSG_DONTWAIT != 0
}
