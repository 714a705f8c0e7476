//! What a request does when its turn comes, and when its call was made.

use super::completing::CQE_F_MORE;
use super::frame::Frame;
use super::layout::{state, Request};
use super::operations::{self, ACCEPT_MULTISHOT};
use super::pending::{self, begin_guard};
use super::queues::Ring;
use super::{files, op};
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::err;
use core::mem::offset_of;

/// Begins a request: the call to make for it, or none, and it is done, or waits.
pub fn start(e: &mut Engine, ring: &mut Ring, i: u32, request: Request, at: u64) -> Option<Call> {
    let n = &request.entry;
    let result = match n.opcode {
        op::NOP => 0,
        op::TIMEOUT => {
            ring.make_wait(i, Request { events: 0, ..request });
            return None;
        }
        op::TIMEOUT_REMOVE | op::POLL_REMOVE => pending::remove(ring, &request),
        op::ASYNC_CANCEL => pending::cancel(ring, i, &request),
        op::FILES_UPDATE => files::update(e, ring, n.addr, n.off as u32, n.len) as i32,
        op::POLL_ADD => match poll(e, ring, &request) {
            Ok(0) => {
                begin_guard(ring, &request);
                ring.make_wait(i, Request { events: n.op_flags & 0xffff, ..request });
                return None;
            }
            Ok(found) => found as i32,
            Err(why) => why,
        },
        op::CLOSE if super::find(e, n.fd).is_some() => err::EBADF as i32,
        _ => match operations::call(e, ring, &request) {
            Err(why) => why,
            Ok((mut call, events)) => {
                let fd = operations::awaited(ring, &request);
                let is_file = events == 0 || operations::is_file(fd);
                let request = Request { events, ..request };
                if !is_file && operations::ready(e, fd, events) == 0 {
                    return block(ring, i, request);
                }
                operations::place_offsets(&mut call, at + offset_of!(Frame, scratch) as u64);
                ring.set(i, &Request { state: state::MADE, ..request });
                return Some(call);
            }
        },
    };
    ring.complete(i, request, result);
    None
}

fn poll(e: &mut Engine, ring: &Ring, request: &Request) -> Result<u32, i32> {
    let fd = operations::descriptor(ring, request)?;
    const POLLNVAL: u32 = 0x20;
    match operations::ready(e, fd, request.entry.op_flags & 0xffff) {
        found if found & POLLNVAL != 0 => Err(err::EBADF as i32),
        found => Ok(found),
    }
}

/// The request would wait.
fn block(ring: &mut Ring, i: u32, request: Request) -> Option<Call> {
    let n = &request.entry;
    let is_message = matches!(n.opcode, op::SEND | op::RECV | op::SENDMSG | op::RECVMSG);
    if is_message && n.op_flags & op::MSG_DONTWAIT != 0 {
        let done = request.done as i32;
        ring.complete(i, request, if done > 0 { done } else { err::EAGAIN as i32 });
    } else {
        begin_guard(ring, &request);
        ring.make_wait(i, request);
    }
    None
}

/// The call of a request was made.
pub fn made(ring: &mut Ring, i: u32, mut request: Request, result: i64) {
    let n = &request.entry;
    match (n.opcode, result) {
        (_, err::EINTR) => return ring.make_ready(i, request),
        (op::CONNECT, err::EINPROGRESS | err::EALREADY) => {
            request.events = operations::POLLOUT;
            block(ring, i, request);
            return;
        }
        // It had begun before.
        (op::CONNECT, err::EISCONN) if request.events != 0 => return ring.complete(i, request, 0),
        (_, err::EAGAIN) if request.events != 0 => {
            block(ring, i, request);
            return;
        }
        (op::SEND | op::RECV, 1..) if n.op_flags & op::MSG_WAITALL != 0 => {
            request.done += result as u32;
            if request.done < n.len {
                return ring.make_ready(i, request);
            }
            let done = request.done as i32;
            return ring.complete(i, request, done);
        }
        (op::SEND | op::RECV, _) if request.done > 0 => {
            let done = request.done as i32;
            return ring.complete(i, request, done);
        }
        (op::ACCEPT, 0..)
            if n.ioprio & ACCEPT_MULTISHOT != 0
                && ring.head.overflown[0] == 0
                && ring.post(n.user_data, result as i32, CQE_F_MORE) =>
        {
            return ring.make_ready(i, request);
        }
        _ => {}
    }
    ring.complete(i, request, result as i32);
}
