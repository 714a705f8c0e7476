//! A thread inside a ring's call: what it does next. Each step ends with a call that the thread makes, as the program, in the ring's
//! notes, from where it comes back with the result; or with the end of the ring's call, when it gets its own registers back.

use super::bell::{ring_bell, silence};
use super::frame::{awaits, purpose, Frame};
use super::layout::{notes, state, Notes, MAGIC};
use super::operations::POLLIN;
use super::pending::{self, add_polled, gather, look};
use super::queues::{Ring, READY};
use super::starting::{made, start};
use super::submitting::submit;
use super::{files, waiting};
use crate::dispatch::{Call, Outcome};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;
use crate::world;
use core::mem::offset_of;

const GETEVENTS: u64 = 1;
const EXT_ARG: u64 = 8;
const ABS_TIMER: u64 = 32;
/// Those, and wake-ups of a polling thread, which there is none of.
const SERVED: u64 = GETEVENTS | 2 | 4 | EXT_ARG | ABS_TIMER;
const EBADFD: i64 = -77;
const ETIME: i64 = -62;
const NANOSECONDS: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The notes and frame of a thread that comes back from a call made there, if it is one.
pub fn returned(e: &Engine, call: &Call) -> Option<(Notes, u64)> {
    let at = call.args[2];
    if call.nr != nr::IO_URING_ENTER || call.args[1] != MAGIC || call.args[0] != u64::MAX {
        return None;
    }
    let notes = e.kernel.rings.iter().map(|ring| Notes { at: ring.notes }).find(|n| n.at != 0 && n.is_frame(at))?;
    Some((notes, at))
}

/// Does the thread make its call in the notes of a ring?
pub fn is_inside(e: &Engine, t: &Thread) -> bool {
    let is_frame = |at| e.kernel.rings.iter().any(|ring| ring.notes != 0 && Notes { at: ring.notes }.is_frame(at));
    t.regs.r12 == MAGIC && is_frame(t.regs.rbx)
}

/// A frame for the thread.
pub fn take_frame(t: &Thread, notes: &Notes, purpose: u32) -> Option<(u64, Frame)> {
    let is_free = |frame: &Frame| frame.purpose == purpose::NONE;
    // One that a handler of a signal has jumped out of is never given back.
    let is_left = |frame: &Frame| frame.thread == t.tid;
    let find = |fits: &dyn Fn(&Frame) -> bool| {
        (0..notes::FRAME_COUNT).map(|i| notes.frame_at(i)).find(|&at| notes.frame(at).is_some_and(|f| fits(&f)))
    };
    let at = find(&is_free).or_else(|| find(&is_left))?;
    Some((at, Frame { purpose, thread: t.tid, regs: t.regs, nr: t.call, ..Frame::default() }))
}

pub fn enter(e: &mut Engine, t: &mut Thread, notes: Notes, call: &Call) -> Outcome {
    use Outcome::Return;
    let [_, to_submit, wanted, flags, ..] = call.args;
    if flags as u32 as u64 & !SERVED != 0 {
        return Return(err::EINVAL);
    }
    let Some(ring) = Ring::load(e, notes) else { return Return(err::EFAULT) };
    if ring.head.is_disabled != 0 {
        return Return(EBADFD);
    }
    let Some((at, mut frame)) = take_frame(t, &notes, purpose::ENTER) else { return Return(err::EAGAIN) };
    frame.to_submit = to_submit as u32;
    if flags & GETEVENTS != 0 {
        frame.waits = 1;
        frame.wanted = (wanted as u32).min(ring.head.completions);
        if let Err(r) = read_arguments(&mut frame, call) {
            return Return(r);
        }
    }
    step(e, t, ring, at, frame)
}

/// The mask and the time of the wait.
fn read_arguments(frame: &mut Frame, call: &Call) -> Result<(), i64> {
    let [.., flags, at, len] = call.args;
    let mut mask = [at, len];
    if flags & EXT_ARG != 0 {
        if len != 24 {
            return Err(err::EINVAL);
        }
        let [mask_at, lengths, time_at] = user::read::<[u64; 3]>(at).ok_or(err::EFAULT)?;
        mask = [mask_at, lengths & 0xffff_ffff];
        if time_at != 0 {
            let time = pending::read_time(time_at).map_err(i64::from)?;
            let from = if flags & ABS_TIMER != 0 { 0 } else { pending::monotonic() };
            frame.deadline = from.saturating_add(time).max(1);
        }
    }
    if mask[0] != 0 {
        if mask[1] != 8 {
            return Err(err::EINVAL);
        }
        frame.mask = mask;
    }
    Ok(())
}

/// The thread is back from the call that it made in the frame at `at`.
pub fn go_on(e: &mut Engine, t: &mut Thread, notes: Notes, at: u64, result: i64) -> Outcome {
    let (Some(mut ring), Some(mut frame)) = (Ring::load(e, notes), notes.frame(at)) else {
        return Outcome::Return(err::EFAULT);
    };
    match core::mem::replace(&mut frame.awaits, awaits::NOTHING) {
        awaits::REQUEST => {
            if let Some(request) = ring.request(frame.request).filter(|request| request.state == state::MADE) {
                made(&mut ring, frame.request, request, result);
            }
        }
        awaits::WAIT => {
            frame.looks = 0;
            if result == err::EINTR {
                frame.result = err::EINTR;
            }
        }
        _ => {}
    }
    step(e, t, ring, at, frame)
}

pub fn step(e: &mut Engine, t: &mut Thread, mut ring: Ring, at: u64, mut frame: Frame) -> Outcome {
    loop {
        if let Some(fd) = files::next_stale(&mut ring) {
            let close = Call { nr: nr::CLOSE, args: [fd as u64, 0, 0, 0, 0, 0] };
            frame.awaits = awaits::OTHER;
            return make(t, &ring, at, &frame, close);
        }
        if let Some((i, request)) = ring.pop(READY) {
            if let Some(call) = start(e, &mut ring, i, request, at) {
                (frame.awaits, frame.request) = (awaits::REQUEST, i);
                return make(t, &ring, at, &frame, call);
            }
            continue;
        }
        if ring.undrain() {
            continue;
        }
        if ring.head.untold > 0 && ring.head.eventfd != 0 {
            ring.head.one = ring.head.untold as u64;
            ring.head.untold = 0;
            let one = ring.notes.at + notes::HEAD + offset_of!(super::layout::Head, one) as u64;
            let tell = Call { nr: nr::WRITE, args: [ring.head.eventfd as u64 - 1, one, 8, 0, 0, 0] };
            frame.awaits = awaits::OTHER;
            return make(t, &ring, at, &frame, tell);
        }
        if frame.purpose == purpose::ENTER && frame.is_over == 0 {
            submit(&mut ring, &mut frame);
            continue;
        }
        if frame.looks == 0 {
            frame.looks = 1;
            if look(e, &mut ring) {
                frame.looks = 0;
                continue;
            }
        }
        ring.flush();
        ring.set_flags();
        if frame.purpose == purpose::ENTER && must_wait(&ring, &mut frame) {
            return wait(e, t, &mut ring, at, &mut frame);
        }
        match frame.purpose {
            purpose::ENTER => {
                let result = if frame.submitted > 0 { frame.submitted as i64 } else { frame.result };
                let is_served = frame.waits != 0 && ring.head.completed() > 0;
                let is_cut_short = matches!(result, err::EINTR | ETIME);
                return end(t, &ring, at, &frame, if is_cut_short && is_served { 0 } else { result });
            }
            purpose::WAIT => return waiting::go_on(e, t, ring, at, frame),
            _ => return end(t, &ring, at, &frame, frame.result),
        }
    }
}

/// The thread makes `call` as the program.
pub fn make(t: &mut Thread, ring: &Ring, at: u64, frame: &Frame, call: Call) -> Outcome {
    ring.save();
    ring.notes.set_frame(at, frame);
    let r = &mut t.regs;
    [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = call.args;
    (r.rax, r.rbx, r.r12, r.rip) = (call.nr, at, MAGIC, ring.notes.at);
    Outcome::Registers
}

/// The thread goes on behind its call, with its own registers.
pub fn end(t: &mut Thread, ring: &Ring, at: u64, frame: &Frame, result: i64) -> Outcome {
    ring.save();
    if ring.head.waiting > 0 && world::has_several() && ring.fd >= 0 {
        // Another thread that waits for completions has to know what for.
        ring_bell(ring.fd);
    }
    ring.notes.set_frame(at, &Frame::default());
    t.regs = frame.regs;
    t.regs.rax = result as u64;
    Outcome::Registers
}

/// The thread makes its call once more, from the beginning.
pub fn end_before_call(t: &mut Thread, ring: &Ring, at: u64, frame: &Frame) -> Outcome {
    end(t, ring, at, frame, frame.nr as i64);
    t.regs.rip -= 2;
    Outcome::Registers
}

fn must_wait(ring: &Ring, frame: &mut Frame) -> bool {
    let is_enough = ring.head.completed() >= frame.wanted;
    if frame.waits == 0 || is_enough || frame.submitted != frame.to_submit || frame.result != 0 {
        return false;
    }
    if frame.deadline != 0 && pending::monotonic() >= frame.deadline {
        frame.result = ETIME;
        return false;
    }
    true
}

/// Waits for what requests wait for, for other threads to complete some, and no longer than the program said.
fn wait(e: &mut Engine, t: &mut Thread, ring: &mut Ring, at: u64, frame: &mut Frame) -> Outcome {
    let (mut count, mut nearest) = gather(ring);
    let fits = waiting::add_others(e, ring, &mut count, &mut nearest);
    if ring.fd >= 0 {
        silence(ring.fd);
        add_polled(ring, &mut count, pending::polled(ring.fd, POLLIN));
    }
    // Where there is no room for all that others wait for, it is looked again soon.
    let look_again = if fits { 0 } else { pending::monotonic() + MILLISECOND };
    for end in [frame.deadline, look_again].into_iter().filter(|&end| end != 0) {
        nearest = Some(nearest.map_or(end, |time| time.min(end)));
    }
    let waits = wait_for(t, ring, at, frame, count, nearest);
    // What is ready of other rings is made before: then the thread goes on with its wait.
    let other =
        waiting::ready_other(e, ring).and_then(|other| Some((take_frame(t, &other.notes, purpose::CLOSE)?, other)));
    match other {
        Some(((place, mut helps), other)) => {
            helps.result = nr::PPOLL as i64;
            step(e, t, other, place, helps)
        }
        None => waits,
    }
}

/// The thread waits for the first `count` of what is noted as polled.
pub fn wait_for(t: &mut Thread, ring: &Ring, at: u64, frame: &mut Frame, count: u64, nearest: Option<u64>) -> Outcome {
    let polled = ring.notes.at + notes::polled(ring.head.requests);
    let mut time_at = 0;
    if let Some(nearest) = nearest {
        let left = nearest.saturating_sub(pending::monotonic());
        frame.time = [left / NANOSECONDS, left % NANOSECONDS];
        time_at = at + offset_of!(Frame, time) as u64;
    }
    frame.awaits = awaits::WAIT;
    let args = [polled, count, time_at, frame.mask[0], frame.mask[1], 0];
    make(t, ring, at, frame, Call { nr: nr::PPOLL, args })
}
