//! Requests that wait for descriptors or times, and those that are called off.

use super::completing::sqe_flag;
use super::layout::{notes, state, Request, MORE_POLLED};
use super::queues::Ring;
use super::{op, operations};
use crate::dispatch::{native, Call};
use crate::inputs::readiness;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::user;

const ETIME: i32 = -62;
const NANOSECONDS: u64 = 1_000_000_000;
const CLOCK_REALTIME: u64 = 0;
const CLOCK_MONOTONIC: u64 = 1;
const CLOCK_BOOTTIME: u64 = 7;

mod timeout {
    pub const ABS: u32 = 1;
    pub const UPDATE: u32 = 2;
    pub const BOOTTIME: u32 = 4;
    pub const REALTIME: u32 = 8;
    pub const LINK_UPDATE: u32 = 16;
    pub const ETIME_SUCCESS: u32 = 32;
}

mod cancel {
    pub const ALL: u32 = 1;
    pub const FD: u32 = 2;
    pub const ANY: u32 = 4;
    pub const FD_FIXED: u32 = 8;
    pub const USERDATA: u32 = 16;
    pub const SERVED: u32 = ALL | FD | ANY | FD_FIXED | USERDATA;
}

fn now(clock: u64) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes the 16 bytes.
    unsafe { syscall!(nr::CLOCK_GETTIME, clock, time.as_mut_ptr()) };
    time[0] * NANOSECONDS + time[1]
}

pub fn monotonic() -> u64 {
    now(CLOCK_MONOTONIC)
}

/// Reads a `struct timespec` as nanoseconds.
pub fn read_time(at: u64) -> Result<u64, i32> {
    let [seconds, nanoseconds] = user::read::<[i64; 2]>(at).ok_or(err::EFAULT as i32)?;
    if seconds < 0 || !(0..NANOSECONDS as i64).contains(&nanoseconds) {
        return Err(err::EINVAL as i32);
    }
    Ok((seconds as u64).saturating_mul(NANOSECONDS).saturating_add(nanoseconds as u64))
}

/// When it is over and how long that is, of a time as the flags say.
fn until(at: u64, flags: u32) -> Result<(u64, u64), i32> {
    let time = read_time(at)?;
    let clock = match flags & (timeout::BOOTTIME | timeout::REALTIME) {
        0 => CLOCK_MONOTONIC,
        timeout::BOOTTIME => CLOCK_BOOTTIME,
        timeout::REALTIME => CLOCK_REALTIME,
        _ => return Err(err::EINVAL as i32),
    };
    let length = if flags & timeout::ABS != 0 { time.saturating_sub(now(clock)) } else { time };
    Ok((monotonic().saturating_add(length).max(1), length))
}

/// Settles a time-out at its submission. That of a linked one begins with the request that it is about.
pub fn set_time(ring: &Ring, request: &mut Request) -> Result<(), i32> {
    const SERVED: u32 = timeout::ABS | timeout::BOOTTIME | timeout::REALTIME | timeout::ETIME_SUCCESS;
    let entry = &request.entry;
    if entry.len != 1 || entry.op_flags & !SERVED != 0 || entry.flags & sqe_flag::FIXED_FILE != 0 {
        return Err(err::EINVAL as i32);
    }
    let count = entry.off as u32;
    (request.deadline, request.duration) = until(entry.addr, entry.op_flags)?;
    if entry.opcode == op::TIMEOUT && count != 0 {
        request.found = 1;
        request.target = ring.head.posted.wrapping_add(count);
    }
    Ok(())
}

/// The request that waits begins to have the time that is linked to it.
pub fn begin_guard(ring: &mut Ring, request: &Request) {
    let Some(i) = request.guard.checked_sub(1) else { return };
    if let Some(timeout) = ring.request(i).filter(|timeout| timeout.state == state::LINKED) {
        let deadline = match timeout.entry.op_flags & timeout::ABS {
            0 => monotonic().saturating_add(timeout.duration),
            _ => timeout.deadline,
        };
        ring.make_wait(i, Request { deadline, ..timeout });
    }
}

/// Writes what is waited for as `struct pollfd`s; how many, and the nearest time.
pub fn gather(ring: &mut Ring) -> (u64, Option<u64>) {
    let at = ring.notes.at + notes::polled(ring.head.requests);
    let (mut count, mut nearest) = (0, None);
    if ring.head.waiting == 0 {
        return (0, None);
    }
    ring.each(|ring, _, request| {
        if request.state != state::WAITING {
            return;
        }
        if request.events != 0 {
            let fd = operations::awaited(ring, &request);
            user::write(at + count * 8, &polled(fd, request.events));
            count += 1;
        } else if nearest.is_none_or(|time| request.deadline < time) {
            nearest = Some(request.deadline);
        }
    });
    (count, nearest)
}

/// Adds one more descriptor to what is waited for. False: there is no room.
pub fn add_polled(ring: &Ring, count: &mut u64, polled: u64) -> bool {
    let at = ring.notes.at + notes::polled(ring.head.requests);
    let fits = *count < ring.head.requests as u64 + MORE_POLLED;
    if fits && user::write(at + *count * 8, &polled) {
        *count += 1;
    }
    fits
}

/// Looks what of the requests that wait is ready, or over. Whether anything was.
pub fn look(e: &mut Engine, ring: &mut Ring) -> bool {
    if ring.head.waiting == 0 {
        return false;
    }
    let (count, nearest) = gather(ring);
    let at = ring.notes.at + notes::polled(ring.head.requests);
    let poll = Call { nr: nr::POLL, args: [at, count, 0, 0, 0, 0] };
    let found = match count {
        0 => 0,
        _ => readiness::answer(e, &poll).unwrap_or_else(|| native(&poll)),
    };
    let now = monotonic();
    let has_counts = ring.head.waiting as u64 > count;
    if found <= 0 && !has_counts && nearest.is_none_or(|time| time > now) {
        return false;
    }
    let (mut n, mut any) = (0, false);
    let posted = ring.head.posted;
    ring.each(|ring, i, request| {
        if request.state != state::WAITING {
            return;
        }
        if request.events != 0 {
            let answer = user::read::<u64>(at + n * 8).unwrap_or(0);
            n += 1;
            if found > 0 && answer >> 48 != 0 {
                any = true;
                ring.end_wait();
                ring.make_ready(i, Request { found: (answer >> 48) as u32, ..request });
            }
            return;
        }
        let is_counted = request.entry.opcode == op::TIMEOUT && request.entry.off as u32 != 0;
        if is_counted && request.target.wrapping_sub(posted) as i32 <= 0 {
            any = true;
            ring.end_wait();
            ring.complete(i, request, 0);
        } else if request.deadline <= now || request.deadline - now > request.duration {
            // Later than it ever was: the clock is another one, after a boot.
            any = true;
            expire(ring, i, request);
        }
    });
    any
}

/// The time of a time-out is over.
fn expire(ring: &mut Ring, i: u32, request: Request) {
    ring.end_wait();
    if request.entry.opcode != op::LINK_TIMEOUT {
        let is_success = request.entry.op_flags & timeout::ETIME_SUCCESS != 0;
        // As the kernel does, it is -ETIME in any case; the flag keeps the chain.
        let flags = request.entry.flags | if is_success { sqe_flag::IO_HARDLINK } else { 0 };
        let entry = super::layout::Entry { flags, ..request.entry };
        return ring.complete(i, Request { entry, ..request }, ETIME);
    }
    let target = request.target.checked_sub(1).and_then(|t| Some((t, ring.request(t)?)));
    let waits = target.filter(|(_, target)| target.state == state::WAITING && target.guard == i + 1);
    let Some((t, target)) = waits else { return ring.complete(i, request, err::ENOENT as i32) };
    ring.end_wait();
    ring.complete(t, Request { guard: 0, ..target }, err::ECANCELED as i32);
    ring.complete(i, request, ETIME);
}

/// Calls off a request that waits, or that has not begun.
fn call_off(ring: &mut Ring, i: u32, request: Request) {
    match request.state {
        state::WAITING => ring.end_wait(),
        state::DRAINED => ring.head.drained = ring.head.drained.wrapping_sub(1),
        _ => {}
    }
    ring.complete(i, request, err::ECANCELED as i32);
}

fn can_be_called_off(request: &Request) -> bool {
    matches!(request.state, state::WAITING | state::DRAINED)
}

/// ASYNC_CANCEL.
pub fn cancel(ring: &mut Ring, own: u32, request: &Request) -> i32 {
    let entry = &request.entry;
    let flags = entry.op_flags;
    if flags & !cancel::SERVED != 0 || entry.off != 0 || entry.len != 0 {
        return err::EINVAL as i32;
    }
    let fits = |r: &Request| match () {
        _ if flags & cancel::ANY != 0 => true,
        _ if flags & cancel::FD != 0 => {
            let is_fixed = r.entry.flags & sqe_flag::FIXED_FILE != 0;
            r.entry.fd == entry.fd && is_fixed == (flags & cancel::FD_FIXED != 0) && r.entry.opcode != op::TIMEOUT
        }
        _ => r.entry.user_data == entry.addr,
    };
    let (all, mut count) = (flags & (cancel::ALL | cancel::ANY) != 0, 0);
    ring.each(|ring, i, r| {
        // One that was called off may have called off others.
        if i != own && can_be_called_off(&r) && fits(&r) && (all || count == 0) {
            call_off(ring, i, r);
            count += 1;
        }
    });
    match (count, all) {
        (0, false) => err::ENOENT as i32,
        (count, true) => count,
        _ => 0,
    }
}

/// POLL_REMOVE and TIMEOUT_REMOVE.
pub fn remove(ring: &mut Ring, request: &Request) -> i32 {
    let entry = &request.entry;
    let is_time = entry.opcode == op::TIMEOUT_REMOVE;
    let wanted = match (is_time, entry.op_flags & timeout::LINK_UPDATE != 0) {
        (false, _) => op::POLL_ADD,
        (true, false) => op::TIMEOUT,
        (true, true) => op::LINK_TIMEOUT,
    };
    let found = ring.find(|r| r.entry.opcode == wanted && r.entry.user_data == entry.addr && r.state == state::WAITING);
    let Some((i, mut timeout)) = found else { return err::ENOENT as i32 };
    if is_time && entry.op_flags & (timeout::UPDATE | timeout::LINK_UPDATE) != 0 {
        match until(entry.off, entry.op_flags) {
            Ok(times) => (timeout.deadline, timeout.duration) = times,
            Err(why) => return why,
        }
        ring.set(i, &timeout);
        return 0;
    }
    call_off(ring, i, timeout);
    0
}

/// A `struct pollfd`.
pub fn polled(fd: i32, events: u32) -> u64 {
    fd as u32 as u64 | (events as u64 & 0xffff) << 32
}
