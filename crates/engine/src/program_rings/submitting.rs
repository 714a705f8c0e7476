//! From entries in the submission ring to requests.

use super::completing::sqe_flag;
use super::frame::Frame;
use super::layout::{array, state, word, Entry, Request, SQE_LEN};
use super::queues::Ring;
use super::setup::flag;
use super::{op, operations};
use crate::sys::err;
use crate::user;

const EBUSY: i64 = -16;

/// Takes the next entry, if there is one and the program wants to submit more.
pub fn submit(ring: &mut Ring, frame: &mut Frame) {
    let head = &ring.head;
    let (Some(first), Some(end)) = (head.sq_word(word::SQ_HEAD), head.sq_word(word::SQ_TAIL)) else {
        frame.is_over = 1;
        return;
    };
    if first == end || frame.submitted == frame.to_submit {
        frame.is_over = 1;
        return close_chain(ring, frame);
    }
    let Some(i) = ring.allocate() else {
        frame.is_over = 1;
        frame.result = EBUSY;
        return close_chain(ring, frame);
    };
    let entry = entry_at(ring, first);
    ring.head.set_sq_word(word::SQ_HEAD, first.wrapping_add(1));
    let Some(entry) = entry else {
        ring.release(i);
        let dropped = ring.head.sq_word(word::SQ_DROPPED).unwrap_or(0);
        ring.head.set_sq_word(word::SQ_DROPPED, dropped.wrapping_add(1));
        frame.is_over = 1;
        return close_chain(ring, frame);
    };
    frame.submitted += 1;
    let sequence = ring.head.sequence;
    ring.head.sequence = sequence.wrapping_add(1);
    let mut request = Request { entry, state: state::LINKED, sequence, ..Request::default() };
    if let Err(why) = operations::prepare(ring, &mut request) {
        request.result = why;
        if frame.chain[0] == 0 && ring.head.flags & flag::SUBMIT_ALL == 0 {
            frame.is_over = 1;
        }
        frame.is_chain_bad = 1;
    }
    append(ring, frame, i, request);
    if entry.flags & (sqe_flag::IO_LINK | sqe_flag::IO_HARDLINK) == 0 || frame.is_over != 0 {
        close_chain(ring, frame);
    }
}

fn entry_at(ring: &Ring, n: u32) -> Option<Entry> {
    let head = &ring.head;
    let slot = n & (head.entries - 1);
    let i = if head.flags & flag::NO_SQARRAY != 0 {
        slot
    } else {
        head.sq_word(array(head.completions) + slot as u64 * 4)?
    };
    if i >= head.entries || head.sqes_at == 0 {
        return None;
    }
    user::read(head.sqes_at + i as u64 * SQE_LEN)
}

/// Adds a request to the chain that is being submitted.
fn append(ring: &mut Ring, frame: &mut Frame, i: u32, mut request: Request) {
    let last = frame.chain[1].checked_sub(1).and_then(|last| Some((last, ring.request(last)?)));
    let is_timeout = request.entry.opcode == op::LINK_TIMEOUT;
    match last {
        Some((last, mut before)) if is_timeout && before.guard == 0 => {
            request.target = last + 1;
            before.guard = i + 1;
            ring.set(last, &before);
            ring.set(i, &request);
            // What follows is linked to the request that the time-out is about: that stays the last one.
        }
        _ if is_timeout => {
            request.result = err::EINVAL as i32;
            frame.is_chain_bad = 1;
            ring.set(i, &request);
            frame.chain = [if frame.chain[0] == 0 { i + 1 } else { frame.chain[0] }, i + 1];
        }
        Some((last, before)) => {
            ring.set(last, &Request { link: i + 1, ..before });
            ring.set(i, &request);
            frame.chain[1] = i + 1;
        }
        None => {
            ring.set(i, &request);
            frame.chain = [i + 1; 2];
        }
    }
}

/// The chain is complete: its first request may go on.
fn close_chain(ring: &mut Ring, frame: &mut Frame) {
    let (first, is_bad) = (frame.chain[0], frame.is_chain_bad != 0);
    (frame.chain, frame.is_chain_bad) = ([0; 2], 0);
    let Some((i, request)) = first.checked_sub(1).and_then(|i| Some((i, ring.request(i)?))) else { return };
    if is_bad {
        return fail(ring, i, request);
    }
    if request.entry.flags & sqe_flag::IO_DRAIN != 0 || ring.head.drained != 0 {
        ring.head.drained += 1;
        return ring.set(i, &Request { state: state::DRAINED, ..request });
    }
    ring.make_ready(i, request);
}

/// One of the chain cannot be made: none of it is.
fn fail(ring: &mut Ring, mut i: u32, mut request: Request) {
    loop {
        let why = if request.result != 0 { request.result } else { err::ECANCELED as i32 };
        let next = request.link.checked_sub(1).and_then(|n| Some((n, ring.request(n)?)));
        ring.complete(i, Request { link: 0, ..request }, why);
        match next {
            Some(next) => (i, request) = next,
            None => return,
        }
    }
}
