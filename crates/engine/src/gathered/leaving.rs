//! What is gathered leaves, behind a commit.

use super::{is_any, slow_down_waits};
use crate::calls::joined;
use crate::commit;
use crate::control::control;
use crate::history;
use crate::operation::{is_ready, wait_ready, Operation, POLLOUT};
use crate::retrace;
use crate::state::Engine;
use crate::sys::{err, nr, syscall, tsc};
use crate::thread::{pending_bit, Thread};
use core::sync::atomic::Ordering::*;
use outlast_image::context::{pending_kind, PendingCall};

const MSG_NOSIGNAL: u32 = 0x4000;

/// Has all leave, before the call with which the thread came to the gate. False: a signal came first, and the thread stands before
/// the call.
pub fn leave_before_call(e: &mut Engine, t: &mut Thread) -> bool {
    let (after, result) = (t.regs.rip, t.regs.rax);
    loop {
        (t.regs.rip, t.regs.rax) = (after - 2, t.call);
        let left = leave(e);
        match left {
            Left::Nothing => break,
            Left::Full(fd) => {
                // Others that commit meanwhile find the thread before its call.
                (t.regs.rip, t.regs.rax) = (after, result);
                let w = wait_ready(t, fd, POLLOUT, -1);
                if w != err::EINTR || is_ours(t) {
                    continue;
                }
                (t.regs.rip, t.regs.rax) = (after - 2, t.call);
            }
            Left::Interrupted if is_ours(t) => continue,
            Left::Interrupted => {}
        }
        t.interrupted = 0;
        return false;
    }
    (t.regs.rip, t.regs.rax) = (after, result);
    if control().request.load(Relaxed) != 0 {
        t.pending.fetch_or(pending_bit::REQUEST, Release);
    }
    true
}

/// Was it no signal of the program's that came?
fn is_ours(t: &mut Thread) -> bool {
    const OURS: u32 = pending_bit::REQUEST | pending_bit::STOP;
    let is_ours = t.pending.load(Acquire) & !OURS == 0;
    if is_ours {
        t.pending.fetch_and(!OURS, AcqRel);
        t.interrupted = 0;
    }
    is_ours
}

/// A knock came: has all leave that can at once. The thread stands in the program's code, or behind a call. True: it was the timer.
pub fn knocked(e: &mut Engine) -> bool {
    let now = tsc();
    let is_timer = e.gathered.timer.may_have_knocked(now);
    if is_any() && !matches!(leave(e), Left::Nothing) {
        e.gathered.timer.start_anew(now);
    }
    is_timer
}

/// What keeps the rest.
enum Left {
    Nothing,
    /// The descriptor takes no more now.
    Full(i32),
    /// A signal, or a request.
    Interrupted,
}

/// Commits before what is gathered, and makes it.
fn leave(e: &mut Engine) -> Left {
    let Some(first) = e.gathered.kept.next(0) else { return Left::Nothing };
    let pending =
        PendingCall { kind: pending_kind::GATHERED, nr: nr::WRITE as u32, args: first.args, offset: 0, size: 0 };
    let seq = commit::commit(e, pending);
    if seq == 0 {
        release(e);
        return Left::Nothing;
    }
    make(e, &mut Operation::new(seq))
}

/// Makes what the commit stands before, or what a dead predecessor left of it.
fn make(e: &mut Engine, operation: &mut Operation) -> Left {
    let left = loop {
        let Some(call) = e.gathered.kept.next(operation.done) else { break Left::Nothing };
        let before = if retrace::is_on() { retrace::made(e, &call) } else { 0 };
        if before > 0 {
            operation.advance(before);
            continue;
        }
        let is_resumed = operation.was_found();
        match operation.run(e, joined::entry(&call)) {
            n @ 1.. => {
                history::sent(e, &call, 0, n as u64);
                operation.advance(n as u64);
            }
            err::EAGAIN => break Left::Full(call.fd()),
            err::EINTR | err::ECANCELED => break Left::Interrupted,
            r => {
                let is_silent = call.nr == nr::SENDTO && call.args[3] as u32 & MSG_NOSIGNAL != 0;
                if r == err::EPIPE && is_resumed && !is_silent {
                    // The kernel signalled the predecessor, which is dead.
                    // SAFETY: a signal to this very thread.
                    unsafe { syscall!(nr::TKILL, syscall!(nr::GETTID), crate::signals::SIGPIPE) };
                }
                // The program learns of it from its next output, which is made at once.
                e.gathered.quick = 0;
                operation.advance(call.args[2]);
            }
        }
    };
    e.gathered.kept.skip(operation.done);
    left
}

/// Somebody without the engine goes on, or nobody: all leaves with no commit before it.
pub fn release(e: &mut Engine) {
    while let Some(call) = e.gathered.kept.next(0) {
        // SAFETY: what the program has asked for, from the engine's memory.
        let n = unsafe { syscall!(call.nr, call.args[0], call.args[1], call.args[2], call.args[3], 0, 0) };
        match n {
            1.. => e.gathered.kept.skip(n as u64),
            err::EINTR => {}
            err::EAGAIN => while !is_ready(call.fd(), POLLOUT) {},
            _ => e.gathered.kept.skip(call.args[2]),
        }
    }
    e.gathered.timer.stop();
}

/// Makes what is left of what the last commit stands before.
pub fn finish(e: &mut Engine, operation: &mut Operation) {
    make(e, operation);
    if is_any() {
        slow_down_waits();
        e.gathered.timer.start_anew(tsc());
    }
}
