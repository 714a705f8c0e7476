//! What becomes of a request that is done: its completion, and what is linked to it.

use super::bell::ring_bell;
use super::layout::{state, word, Entry, Request, CQE_LEN};
use super::op;
use super::queues::{Ring, OVERFLOWN};
use crate::sys::err;
use crate::user;

pub mod sqe_flag {
    pub const FIXED_FILE: u8 = 1 << 0;
    pub const IO_DRAIN: u8 = 1 << 1;
    pub const IO_LINK: u8 = 1 << 2;
    pub const IO_HARDLINK: u8 = 1 << 3;
    pub const ASYNC: u8 = 1 << 4;
    pub const CQE_SKIP_SUCCESS: u8 = 1 << 6;
    pub const SERVED: u8 = FIXED_FILE | IO_DRAIN | IO_LINK | IO_HARDLINK | ASYNC | CQE_SKIP_SUCCESS;
}

/// More completions of the same entry follow.
pub const CQE_F_MORE: u32 = 1 << 1;

const SQ_CQ_OVERFLOW: u32 = 1 << 1;
const SQ_TASKRUN: u32 = 1 << 2;

impl Ring {
    /// Puts a completion into the ring; false if there is no room.
    pub fn post(&mut self, user_data: u64, result: i32, flags: u32) -> bool {
        let at = self.head.completions_at();
        if at == 0 || self.head.completed() >= self.head.completions {
            return false;
        }
        let Some(tail) = user::read::<u32>(at + word::CQ_TAIL) else { return false };
        let slot = tail & (self.head.completions - 1);
        let cqe = [user_data, result as u32 as u64 | (flags as u64) << 32];
        if !user::write(at + word::CQES + slot as u64 * CQE_LEN, &cqe) {
            return false;
        }
        // The processor keeps the order of stores.
        user::write(at + word::CQ_TAIL, &tail.wrapping_add(1));
        self.count();
        true
    }

    fn count(&mut self) {
        self.head.posted = self.head.posted.wrapping_add(1);
        if self.head.eventfd != 0 {
            self.head.untold += 1;
        }
        if self.fd >= 0 {
            ring_bell(self.fd);
        }
    }

    /// The request is done.
    pub fn complete(&mut self, i: u32, request: Request, result: i32) {
        let has_failed = result < 0 || is_short(&request, result);
        let (link, guard) = (request.link, request.guard);
        self.tell(i, request, result);
        if let Some((g, timeout)) = guard.checked_sub(1).and_then(|g| Some((g, self.request(g)?))) {
            self.call_off(g, timeout);
        }
        let breaks = has_failed && request.entry.flags & sqe_flag::IO_HARDLINK == 0;
        let mut link = link;
        while let Some((next, follower)) = link.checked_sub(1).and_then(|n| Some((n, self.request(n)?))) {
            if follower.state != state::LINKED {
                return;
            }
            if !breaks {
                return self.make_ready(next, follower);
            }
            link = follower.link;
            let guard = follower.guard;
            self.tell(next, follower, err::ECANCELED as i32);
            if let Some((g, timeout)) = guard.checked_sub(1).and_then(|g| Some((g, self.request(g)?))) {
                self.call_off(g, timeout);
            }
        }
    }

    /// A linked time-out whose request is done.
    fn call_off(&mut self, i: u32, timeout: Request) {
        if timeout.entry.opcode == op::LINK_TIMEOUT && matches!(timeout.state, state::WAITING | state::LINKED) {
            if timeout.state == state::WAITING {
                self.end_wait();
            }
            self.tell(i, timeout, err::ECANCELED as i32);
        }
    }

    /// Completes the request itself, and gives its place back.
    fn tell(&mut self, i: u32, request: Request, result: i32) {
        if let Some(fd) = request.kept.checked_sub(1) {
            self.close(fd as i32);
        }
        let is_silent = request.entry.flags & sqe_flag::CQE_SKIP_SUCCESS != 0 && result >= 0;
        let is_full = self.head.overflown[0] != 0;
        if is_silent || !is_full && self.post(request.entry.user_data, result, request.cqe_flags) {
            return self.release(i);
        }
        let overflown = Request { state: state::OVERFLOWN, result, ..request };
        self.push(OVERFLOWN, i, overflown);
        self.set_flags();
    }

    /// Has a descriptor closed that was kept for a request.
    pub fn close(&mut self, fd: i32) {
        let entry = Entry { opcode: op::CLOSE, flags: sqe_flag::CQE_SKIP_SUCCESS, fd, ..Entry::default() };
        if let Some(i) = self.allocate() {
            self.make_ready(i, Request { entry, sequence: self.head.sequence, ..Request::default() });
        }
    }

    /// Moves completions into the ring for which there was no room.
    pub fn flush(&mut self) {
        while let Some((i, request)) = self.head.overflown[0].checked_sub(1).and_then(|i| Some((i, self.request(i)?))) {
            if !self.post(request.entry.user_data, request.result, request.cqe_flags) {
                return;
            }
            self.pop(OVERFLOWN);
            self.release(i);
        }
    }

    /// Tells the program whether it should enter the ring although it has nothing to submit: requests go on only when it does.
    pub fn set_flags(&mut self) {
        let overflow = if self.head.overflown[0] != 0 { SQ_CQ_OVERFLOW } else { 0 };
        let waits = if self.head.waiting != 0 || self.head.ready[0] != 0 { SQ_TASKRUN } else { 0 };
        if self.head.sq_word(word::SQ_FLAGS).is_some_and(|flags| flags != overflow | waits) {
            self.head.set_sq_word(word::SQ_FLAGS, overflow | waits);
        }
    }
}

/// Transfers that moved less than was asked for break a chain of links.
fn is_short(request: &Request, result: i32) -> bool {
    let entry = &request.entry;
    match entry.opcode {
        op::READ | op::WRITE | op::READ_FIXED | op::WRITE_FIXED => (result as u32) < entry.len,
        op::SEND | op::RECV => entry.op_flags & op::MSG_WAITALL != 0 && (result as u32) < entry.len,
        _ => false,
    }
}
