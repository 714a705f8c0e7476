//! Other calls that wait for descriptors, while requests wait, too: what is ready is made meanwhile, and its completion makes the ring's
//! descriptor readable.

use super::bell::{ring_bell, silence};
use super::frame::{purpose, Frame};
use super::layout::{state, Notes};
use super::operations::{self, POLLIN};
use super::pending::{self, add_polled, gather, look};
use super::queues::Ring;
use super::stepping::{end, end_before_call, is_inside, step, take_frame, wait_for};
use crate::calls::epoll;
use crate::dispatch::{native, Call, Outcome};
use crate::inputs::readiness;
use crate::operation::is_nonblocking;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;

const MOST_POLLED: u64 = 512;
const MILLISECOND: u64 = 1_000_000;
const NO_TIME: [u64; 2] = [0; 2];

/// The call, if it waits for descriptors while requests do. `None`: it is made as ever.
pub fn wait(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    if !super::exist(e) || !is_one(call) || is_inside(e, t) {
        return None;
    }
    if call.nr == nr::READ && (e.fds.kind(call.fd()) != kind::ANONYMOUS || is_nonblocking(call.fd())) {
        return None;
    }
    let mut busy = None;
    for_each(e, |_, ring| {
        tell(ring);
        if busy.is_none() && is_busy(ring) {
            busy = Some(ring.notes);
        }
    });
    let notes = busy?;
    if call.nr == nr::READ && can_read(e, call) {
        return None;
    }
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

/// Calls `f` for every ring of the program's.
fn for_each(e: &mut Engine, mut f: impl FnMut(&mut Engine, &mut Ring)) {
    for i in 0..e.kernel.rings.len() {
        let place = e.kernel.rings[i];
        if place.notes != 0 && place.fd >= 0 {
            if let Some(mut ring) = Ring::load(e, Notes { at: place.notes }) {
                f(e, &mut ring);
            }
        }
    }
}

fn can_read(e: &mut Engine, call: &Call) -> bool {
    operations::ready(e, call.fd(), POLLIN) != 0
}

/// Has the ring's descriptor say whether there are completions.
fn tell(ring: &Ring) {
    if ring.head.completed() > 0 {
        ring_bell(ring.fd);
    } else {
        silence(ring.fd);
    }
}

fn is_busy(ring: &Ring) -> bool {
    ring.head.waiting > 0 || ring.head.ready[0] != 0
}

/// Is it a call that waits for descriptors?
pub fn is_one(call: &Call) -> bool {
    match call.nr {
        nr::POLL | nr::PPOLL => call.args[1] <= MOST_POLLED,
        // Of an eventfd that is told of completions, perhaps.
        nr::READ => true,
        n => epoll::waits(n),
    }
}

/// When the call's time is over, CLOCK_MONOTONIC; 0: never. `None`: it is for the kernel to say that it is no time.
fn deadline(call: &Call) -> Option<u64> {
    let after = |length: u64| pending::monotonic().saturating_add(length).max(1);
    match call.nr {
        nr::READ => Some(0),
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
pub fn go_on(e: &mut Engine, t: &mut Thread, mut ring: Ring, at: u64, frame: Frame) -> Outcome {
    let call = Call::made(frame.nr, &frame.regs);
    if ring.head.completed() > 0 {
        ring_bell(ring.fd);
    }
    if frame.result == err::EINTR {
        return end(t, &ring, at, &frame, err::EINTR);
    }
    if let Some(another) = ready_other(e, &ring) {
        if let Some((place, mut moved)) = take_frame(t, &another.notes, purpose::WAIT) {
            end(t, &ring, at, &frame, 0);
            (moved.regs, moved.nr, moved.deadline, moved.mask) = (frame.regs, frame.nr, frame.deadline, frame.mask);
            return step(e, t, another, place, moved);
        }
    }
    if call.nr == nr::READ {
        if can_read(e, &call) {
            return end_before_call(t, &ring, at, &frame);
        }
        return wait_more(e, t, &mut ring, at, frame, &call);
    }
    let is_over = frame.deadline != 0 && pending::monotonic() >= frame.deadline;
    let at_once = without_waiting(&call);
    let r = readiness::answer(e, &at_once).unwrap_or_else(|| native(&at_once));
    let r = if epoll::waits(call.nr) { epoll::waited(e, &call, r) } else { r };
    if r != 0 || is_over {
        return end(t, &ring, at, &frame, r);
    }
    wait_more(e, t, &mut ring, at, frame, &call)
}

/// Another ring that can go on.
pub fn ready_other(e: &mut Engine, ring: &Ring) -> Option<Ring> {
    let mut other = None;
    for_each(e, |e, another| {
        if another.notes.at != ring.notes.at && other.is_none() && is_busy(another) {
            if look(e, another) || another.head.ready[0] != 0 {
                other = Some(another.notes);
            }
            another.save();
        }
    });
    Ring::load(e, other?)
}

/// Adds what requests of other rings wait for. False: there is no room for all.
pub fn add_others(e: &mut Engine, ring: &Ring, count: &mut u64, nearest: &mut Option<u64>) -> bool {
    let mut fits = true;
    for_each(e, |_, another| {
        if another.notes.at == ring.notes.at || another.head.waiting == 0 {
            return;
        }
        another.each(|another, _, request| {
            if request.state != state::WAITING {
                return;
            }
            if request.events == 0 {
                *nearest = Some(nearest.map_or(request.deadline, |time| time.min(request.deadline)));
                return;
            }
            let fd = operations::awaited(another, &request);
            fits &= add_polled(ring, count, pending::polled(fd, request.events));
        });
    });
    fits
}

/// Waits for what the call waits for, and for what requests do.
fn wait_more(e: &mut Engine, t: &mut Thread, ring: &mut Ring, at: u64, mut frame: Frame, call: &Call) -> Outcome {
    let (mut count, mut nearest) = gather(ring);
    let mut fits = add_others(e, ring, &mut count, &mut nearest);
    if count == 0 && nearest.is_none() {
        // Only the call itself waits.
        return end_before_call(t, ring, at, &frame);
    }
    if call.nr == nr::READ || epoll::waits(call.nr) {
        fits &= add_polled(ring, &mut count, pending::polled(call.fd(), POLLIN));
    } else {
        for i in 0..call.args[1] {
            // What was found last is no part of the question.
            let polled = user::read::<u64>(call.args[0] + i * 8).unwrap_or(0) & 0xffff_ffff_ffff;
            fits &= add_polled(ring, &mut count, polled);
        }
    }
    if ring.head.completed() == 0 && ring.fd >= 0 {
        // Other threads may submit more.
        silence(ring.fd);
        fits &= add_polled(ring, &mut count, pending::polled(ring.fd, POLLIN));
    }
    // There is no room for more: the rest is looked at again and again.
    let look_again = if fits { 0 } else { pending::monotonic() + MILLISECOND };
    for end in [frame.deadline, look_again].into_iter().filter(|&end| end != 0) {
        nearest = Some(nearest.map_or(end, |time| time.min(end)));
    }
    wait_for(t, ring, at, &mut frame, count, nearest)
}
