//! poll, select, epoll and FIONREAD, for as long as there is input in the log, what waits there is ready; and so is a connection on which
//! there is something that is not to be sent again: that takes no room.
//!
//! The kernel is asked without waiting, and its answer completed.

use super::serving::waiting;
use crate::calls::epoll::{interests, spend};
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::replies;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::mutant::Mutant;

const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
const POLLRDNORM: u16 = 0x40;
const POLLWRNORM: u16 = 0x100;
/// What tells of something new: those, POLLPRI, POLLERR, POLLHUP, POLLRDBAND, POLLRDHUP. So do the events of epoll.
const NEWS: u16 = POLLIN | POLLRDNORM | 2 | 8 | 0x10 | 0x80 | 0x2000;
const EPOLLIN: u32 = 1;
const EPOLLRDNORM: u32 = 0x40;
pub const FIONREAD: u64 = 0x541b;
/// `struct pollfd`, and the packed `struct epoll_event`.
const POLLFD_LEN: u64 = 8;
const EVENT_LEN: u64 = 12;
/// Descriptors that select can look at.
const SETSIZE: u64 = 1024;

/// The call's answer, if the log has a part in it.
pub fn answer(e: &mut Engine, call: &Call) -> Option<i64> {
    if e.inputs.is_empty() && !replies::are_owed() || without(Mutant::Readiness) {
        return None;
    }
    match call.nr {
        nr::POLL | nr::PPOLL => poll(e, call),
        nr::SELECT | nr::PSELECT6 => select(e, call),
        nr::EPOLL_WAIT | nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2 => epoll(e, call),
        nr::IOCTL if call.args[1] & 0xffff_ffff == FIONREAD => count(e, call),
        _ => None,
    }
}

/// How deep the kernel lets epolls watch each other.
const NESTED: u32 = 5;

/// Has the log anything for `fd`?
pub fn is_ready(e: &mut Engine, fd: i32) -> bool {
    has_input(e, fd, NESTED, scratch::regions_object())
}

/// The same; or for what the epoll behind `fd` watches. `buf`: room for what /proc says of epolls.
fn has_input(e: &mut Engine, fd: i32, depth: u32, buf: &mut [u8]) -> bool {
    if waiting(e, fd).is_some() {
        return true;
    }
    if depth == 0 || e.fds.kind(fd) != kind::ANONYMOUS {
        return false;
    }
    let (buf, rest) = halves(buf);
    interests(fd, buf)
        .any(|interest| interest.events & (EPOLLIN | EPOLLRDNORM) != 0 && has_input(e, interest.fd, depth - 1, rest))
}

fn halves(buf: &mut [u8]) -> (&mut [u8], &mut [u8]) {
    buf.split_at_mut(buf.len() / 2)
}

/// Times that are over at once, as the calls take them.
const NO_TIME: [u64; 2] = [0; 2];

/// The call with argument `i`, its time-out, as a number or as the address of one.
fn without_waiting(call: &Call, i: usize, by_address: bool) -> Call {
    let mut args = call.args;
    args[i] = if by_address { NO_TIME.as_ptr() as u64 } else { 0 };
    Call { nr: call.nr, args }
}

/// What of these events of a descriptor, of poll or epoll, the log makes come about, or what is not to be sent again.
fn come_about(e: &mut Engine, fd: i32, events: u16, buf: &mut [u8]) -> u16 {
    let read = events & (POLLIN | POLLRDNORM);
    let written = events & (POLLOUT | POLLWRNORM);
    let is_readable = read != 0 && has_input(e, fd, NESTED, buf);
    let is_writable = written != 0 && replies::are_owed_on(e, fd);
    (if is_readable { read } else { 0 }) | (if is_writable { written } else { 0 })
}

fn poll(e: &mut Engine, call: &Call) -> Option<i64> {
    let (at, n) = (call.args[0], call.args[1].min(1 << 16));
    let entry = |i: u64| user::read::<[u8; 8]>(at + i * POLLFD_LEN);
    let nothing_new = replies::keep_back(e);
    let parts = |p: [u8; 8]| {
        let fd = i32::from_le_bytes([p[0], p[1], p[2], p[3]]);
        (fd, u16::from_le_bytes([p[4], p[5]]), u16::from_le_bytes([p[6], p[7]]))
    };
    let mut logged = |p: [u8; 8]| {
        let (fd, events, _) = parts(p);
        come_about(e, fd, events, scratch::regions_object())
    };
    if !(0..n).any(|i| entry(i).is_some_and(|p| logged(p) != 0)) {
        return None;
    }
    let mut ready = native(&without_waiting(call, 2, call.nr == nr::PPOLL));
    if ready < 0 {
        return Some(ready);
    }
    for i in 0..n {
        let p = entry(i)?;
        let (_, _, found) = parts(p);
        let told = if nothing_new { found & !NEWS } else { found } | logged(p);
        ready += i64::from(told != 0) - i64::from(found != 0);
        user::write(at + i * POLLFD_LEN + 6, &told);
    }
    Some(ready)
}

/// A set of select.
type Set = [u64; SETSIZE as usize / 64];

/// What of the set at `at` comes about.
fn come_about_of_set(e: &mut Engine, at: u64, n: u64, event: u16) -> Option<Set> {
    let mut set = [0; SETSIZE as usize / 64];
    for fd in (0..n).filter(|_| at != 0) {
        let is_asked = user::read::<u64>(at + fd / 64 * 8)? >> (fd % 64) & 1 != 0;
        if is_asked && come_about(e, fd as i32, event, scratch::regions_object()) != 0 {
            set[fd as usize / 64] |= 1 << (fd % 64);
        }
    }
    Some(set)
}

fn select(e: &mut Engine, call: &Call) -> Option<i64> {
    let [n, read, written, ..] = call.args;
    let n = n.min(SETSIZE);
    let nothing_new = replies::keep_back(e);
    let sets = [
        (read, come_about_of_set(e, read, n, POLLIN)?, nothing_new),
        (written, come_about_of_set(e, written, n, POLLOUT)?, false),
    ];
    if sets.iter().all(|(_, set, _)| set.iter().all(|word| *word == 0)) {
        return None;
    }
    let mut ready = native(&without_waiting(call, 4, true));
    if ready < 0 {
        return Some(ready);
    }
    for (at, set, alone) in sets.into_iter().filter(|(at, ..)| *at != 0) {
        for (i, logged) in set.into_iter().enumerate().take(n.div_ceil(64) as usize) {
            let found = user::read::<u64>(at + i as u64 * 8)?;
            let told = if alone { logged } else { found | logged };
            ready += i64::from(told.count_ones()) - i64::from(found.count_ones());
            user::write(at + i as u64 * 8, &told);
        }
    }
    Some(ready)
}

fn epoll(e: &mut Engine, call: &Call) -> Option<i64> {
    let [fd, at, most, ..] = call.args;
    let nothing_new = replies::keep_back(e);
    let mut ready = None;
    let event = |i: i64| at + i as u64 * EVENT_LEN;
    let (buf, rest) = halves(scratch::regions_object());
    for interest in interests(fd as i32, buf) {
        let events = u32::from(come_about(e, interest.fd, interest.events as u16, rest));
        if events == 0 {
            continue;
        }
        let ready = ready.get_or_insert_with(|| {
            let ready = native(&without_waiting(call, 3, call.nr == nr::EPOLL_PWAIT2));
            if nothing_new {
                (0..ready).for_each(|i| leave_out(event(i), NEWS.into()));
            }
            ready
        });
        if *ready < 0 {
            break;
        }
        match (0..*ready).find(|&i| user::read::<u64>(event(i) + 4) == Some(interest.data)) {
            Some(i) => {
                let found = user::read::<u32>(event(i))?;
                user::write(event(i), &(found | events));
            }
            None if (*ready as u64) < most => {
                spend(fd as i32, &interest);
                user::write(event(*ready), &events);
                user::write(event(*ready) + 4, &interest.data);
                *ready += 1;
            }
            None => {}
        }
    }
    if nothing_new {
        ready.map(|ready| without_empty(event, ready))
    } else {
        ready
    }
}

fn leave_out(event: u64, events: u32) {
    if let Some(found) = user::read::<u32>(event) {
        user::write(event, &(found & !events));
    }
}

/// Leaves out events that tell of nothing: how many there are then.
fn without_empty(event: impl Fn(i64) -> u64, count: i64) -> i64 {
    let mut kept = 0;
    for i in 0..count {
        let Some(found) = user::read::<[u8; EVENT_LEN as usize]>(event(i)) else { return count };
        if found[..4] != [0; 4] {
            user::write(event(kept), &found);
            kept += 1;
        }
    }
    kept
}

/// FIONREAD: as many bytes as the next read takes at most.
fn count(e: &mut Engine, call: &Call) -> Option<i64> {
    let n = waiting(e, call.fd())?;
    Some(if user::write(call.args[2], &(n as i32)) { 0 } else { err::EFAULT })
}
