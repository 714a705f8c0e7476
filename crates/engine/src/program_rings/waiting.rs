//! Other calls that wait for descriptors, while requests wait, too: what is ready is made meanwhile, and its completion makes the ring's
//! descriptor readable.

use super::layout::{purpose, Frame, Notes};
use super::pending::{self, add_polled, gather};
use super::queues::Ring;
use super::setup::{ring_bell, silence};
use super::stepping::{end, end_before_call, is_inside, step, take_frame, wait_for};
use crate::calls::epoll;
use crate::dispatch::{native, Call, Outcome};
use crate::inputs::readiness;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;

const MOST_POLLED: u64 = 512;
const MILLISECOND: u64 = 1_000_000;
const NO_TIME: [u64; 2] = [0; 2];

/// The call, if it waits for descriptors while requests do. `None`: it is made as ever.
pub fn wait(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    if !super::exist(e) || !is_one(call) || is_inside(e, t) {
        return None;
    }
    let mut busy = None;
    for i in 0..e.kernel.rings.len() {
        let place = e.kernel.rings[i];
        if place.notes == 0 || place.fd < 0 {
            continue;
        }
        let Some(ring) = Ring::load(e, Notes { at: place.notes }) else { continue };
        if ring.head.completed() > 0 {
            ring_bell(ring.fd);
        } else {
            silence(ring.fd);
        }
        if ring.head.waiting > 0 || ring.head.ready[0] != 0 {
            busy = Some(busy.map_or(i, |busy: usize| busy));
        }
    }
    let notes = Notes { at: e.kernel.rings[busy?].notes };
    let deadline = deadline(call)?;
    let ring = Ring::load(e, notes)?;
    let (at, mut frame) = take_frame(t, &notes, purpose::WAIT)?;
    frame.deadline = deadline;
    frame.mask = match call.nr {
        nr::PPOLL => [call.args[3], call.args[4]],
        nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2 => [call.args[4], call.args[5]],
        _ => [0; 2],
    };
    if frame.mask[0] == 0 {
        frame.mask = [0; 2];
    }
    Some(step(e, t, ring, at, frame))
}

/// Is it a call that waits for descriptors?
pub fn is_one(call: &Call) -> bool {
    match call.nr {
        nr::POLL | nr::PPOLL => call.args[1] <= MOST_POLLED,
        n => epoll::waits(n),
    }
}

/// When the call's time is over, CLOCK_MONOTONIC; 0: never. `None`: it is for the kernel to say that it is no time.
fn deadline(call: &Call) -> Option<u64> {
    let after = |length: u64| pending::monotonic().saturating_add(length).max(1);
    match call.nr {
        nr::PPOLL | nr::EPOLL_PWAIT2 => {
            let at = call.args[if call.nr == nr::PPOLL { 2 } else { 3 }];
            match at {
                0 => Some(0),
                at => pending::read_time(at).ok().map(after),
            }
        }
        n => {
            let milliseconds = call.args[if n == nr::POLL { 2 } else { 3 }] as i32;
            Some(if milliseconds < 0 { 0 } else { after(milliseconds as u64 * MILLISECOND) })
        }
    }
}

/// The same call, over at once.
fn without_waiting(call: &Call) -> Call {
    let mut at_once = *call;
    match call.nr {
        nr::POLL => at_once.args[2] = 0,
        nr::PPOLL => at_once.args[2] = NO_TIME.as_ptr() as u64,
        nr::EPOLL_PWAIT2 => at_once.args[3] = NO_TIME.as_ptr() as u64,
        _ => at_once.args[3] = 0,
    }
    at_once
}

/// Nothing of the ring's can go on: looks what the call says, and waits if that is nothing.
pub fn go_on(e: &mut Engine, t: &mut Thread, mut ring: Ring, at: u64, mut frame: Frame) -> Outcome {
    let call = Call::made(frame.nr, &frame.regs);
    if ring.head.completed() > 0 {
        ring_bell(ring.fd);
    }
    if frame.result == err::EINTR {
        return end(t, &ring, at, &frame, err::EINTR);
    }
    let is_over = frame.deadline != 0 && pending::monotonic() >= frame.deadline;
    let at_once = without_waiting(&call);
    let r = readiness::answer(e, &at_once).unwrap_or_else(|| native(&at_once));
    let r = if epoll::waits(call.nr) { epoll::waited(e, &call, r) } else { r };
    if r != 0 || is_over {
        return end(t, &ring, at, &frame, r);
    }
    let (mut count, mut nearest) = gather(&mut ring);
    if count == 0 && nearest.is_none() {
        // Only the call itself waits.
        return end_before_call(t, &ring, at, &frame);
    }
    let mut fits = true;
    if epoll::waits(call.nr) {
        fits = add_polled(&ring, &mut count, pending::input(call.fd()));
    } else {
        for i in 0..call.args[1] {
            // What was found last is no part of the question.
            let polled = user::read::<u64>(call.args[0] + i * 8).unwrap_or(0) & 0xffff_ffff_ffff;
            fits &= add_polled(&ring, &mut count, polled);
        }
    }
    if !fits {
        return end_before_call(t, &ring, at, &frame);
    }
    if frame.deadline != 0 {
        nearest = Some(nearest.map_or(frame.deadline, |time| time.min(frame.deadline)));
    }
    wait_for(t, &ring, at, &mut frame, count, nearest)
}
