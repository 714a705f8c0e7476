//! sendmmsg and recvmmsg: several messages, each with a commit and an operation of its own. What a dead predecessor has
//! transferred so far is part of the call that the commit stands before: the messages that are left, and their number in the
//! sixth argument, which the kernel does not look at.

use super::{input, output};
use crate::commit::commit;
use crate::dispatch::{interruptible, native, visible, Call};
use crate::history;
use crate::operation::{self, Operation};
use crate::state::Engine;
use crate::sys::{err, now_ns, nr};
use crate::thread::Thread;
use crate::user;

const MSG_DONTWAIT: u64 = 0x40;
const MSG_WAITFORONE: u64 = 0x1_0000;
/// MSG_PEEK, MSG_ERRQUEUE: nothing is consumed.
const LOOKING: u64 = 0x2 | 0x2000;
/// UIO_MAXIOV.
const MOST: u64 = 1024;
/// Bytes of a `struct mmsghdr`, and where its length stands behind the `struct msghdr`.
const MESSAGE: u64 = input::MESSAGE_LEN;
const LENGTH: u64 = 56;

/// The messages that are left, and how many are done.
#[derive(Clone, Copy)]
struct Left {
    call: Call,
}

impl Left {
    fn new(call: &Call) -> Left {
        let [fd, at, count, flags, time, _] = call.args;
        Left { call: Call { nr: call.nr, args: [fd, at, (count & 0xffff_ffff).min(MOST), flags, time, 0] } }
    }

    fn done(&self) -> i64 {
        self.call.args[5] as i64
    }

    /// The next message as a call of its own.
    fn one(&self, nr: u64, flags: u64) -> Call {
        Call { nr, args: [self.call.args[0], self.call.args[1], flags, 0, 0, 0] }
    }

    /// The call's result after a message failed.
    fn failed(&self, t: &mut Thread, r: i64) -> i64 {
        if self.done() == 0 {
            return r;
        }
        t.interrupted = 0;
        self.done()
    }

    /// The next message was transferred, `r` bytes of it. False: it was the last.
    fn advance(&mut self, r: i64) -> bool {
        let a = &mut self.call.args;
        user::write(a[1] + LENGTH, &(r as u32));
        (a[1], a[2], a[5]) = (a[1] + MESSAGE, a[2] - 1, a[5] + 1);
        a[2] > 0
    }
}

pub fn send(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let left = Left::new(call);
    if left.call.args[2] == 0 {
        return native(call);
    }
    let seq = commit(e, left.call.pending(operation::kind(e)));
    match seq {
        0 => interruptible(t, call),
        seq => finish_sending(e, t, &left.call, &mut Operation::new(seq)),
    }
}

/// Sends what the commit stands before, and the messages after it.
pub fn finish_sending(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let mut left = Left { call: *call };
    let mut next;
    let mut operation = operation;
    loop {
        // As the kernel has it, a socket's time-out is that of each message.
        if left.done() > 0 {
            t.countdown.forget();
        }
        let r = output::finish(e, t, &left.one(nr::SENDMSG, call.args[3]), operation);
        if r < 0 {
            return left.failed(t, r);
        }
        if !left.advance(r) {
            return left.done();
        }
        let seq = commit(e, left.call.pending(operation::kind(e)));
        if seq == 0 {
            return left.done();
        }
        next = Operation::new(seq);
        operation = &mut next;
    }
}

pub fn receive(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    history::lose(e);
    let mut left = Left::new(call);
    let [_, _, count, flags, time, _] = left.call.args;
    if flags & LOOKING != 0 || count == 0 {
        return visible(e, t, call);
    }
    let until = match time {
        0 => None,
        at => match user::read::<[u64; 2]>(at) {
            Some([s, ns]) if s > i64::MAX as u64 || ns >= 1_000_000_000 => return err::EINVAL,
            Some([s, ns]) => Some(now_ns().saturating_add(s.saturating_mul(1_000_000_000)).saturating_add(ns)),
            None => return err::EFAULT,
        },
    };
    let result = loop {
        let waits = flags & MSG_WAITFORONE == 0 || left.done() == 0;
        let flags = flags & !MSG_WAITFORONE | if waits { 0 } else { MSG_DONTWAIT };
        if left.done() > 0 {
            t.countdown.forget();
        }
        let r = input::consume(e, t, &left.one(nr::RECVMSG, flags), &left.call);
        if r < 0 {
            break left.failed(t, r);
        }
        // As the kernel has it: the time is looked at after each message, and cuts no wait short.
        if !left.advance(r) || until.is_some_and(|until| now_ns() >= until) {
            break left.done();
        }
    };
    if let (Some(until), 1..) = (until, result) {
        let rest = until.saturating_sub(now_ns());
        user::write(time, &[rest / 1_000_000_000, rest % 1_000_000_000]);
    }
    result
}

/// Receives the message that the commit stands before, or takes it from a dead predecessor. Those after it are left to the
/// program's next call.
pub fn finish_receiving(e: &mut Engine, call: &Call, operation: &mut Operation) -> i64 {
    let mut left = Left { call: *call };
    match input::receive_message(e, operation, &left.one(nr::RECVMSG, call.args[3] & !MSG_WAITFORONE)) {
        r @ 0.. => {
            left.advance(r);
            left.done()
        }
        _ if left.done() > 0 => left.done(),
        r => r,
    }
}
