//! poll, select, epoll and FIONREAD, for as long as there is input in the log: what waits there is ready.
//!
//! The kernel is asked without waiting, and its answer completed.

use super::serving::waiting;
use crate::calls::epoll::{interests, spend};
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::mutant::Mutant;

const POLLIN: u16 = 1;
const POLLRDNORM: u16 = 0x40;
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
    if e.inputs.is_empty() || without(Mutant::Readiness) {
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

fn poll(e: &mut Engine, call: &Call) -> Option<i64> {
    let (at, n) = (call.args[0], call.args[1].min(1 << 16));
    let entry = |i: u64| user::read::<[u8; 8]>(at + i * POLLFD_LEN);
    let parts = |p: [u8; 8]| {
        let fd = i32::from_le_bytes([p[0], p[1], p[2], p[3]]);
        (fd, u16::from_le_bytes([p[4], p[5]]), u16::from_le_bytes([p[6], p[7]]))
    };
    let mut is_wanted = |p: [u8; 8]| {
        let (fd, events, _) = parts(p);
        events & (POLLIN | POLLRDNORM) != 0 && is_ready(e, fd)
    };
    if !(0..n).any(|i| entry(i).is_some_and(&mut is_wanted)) {
        return None;
    }
    let mut ready = native(&without_waiting(call, 2, call.nr == nr::PPOLL));
    if ready < 0 {
        return Some(ready);
    }
    for i in 0..n {
        let p = entry(i)?;
        if is_wanted(p) {
            let (_, events, found) = parts(p);
            ready += (found == 0) as i64;
            user::write(at + i * POLLFD_LEN + 6, &(found | events & (POLLIN | POLLRDNORM)));
        }
    }
    Some(ready)
}

fn select(e: &mut Engine, call: &Call) -> Option<i64> {
    let (n, at) = (call.args[0].min(SETSIZE), call.args[1]);
    if at == 0 {
        return None;
    }
    let word = |fd: u64| user::read::<u64>(at + fd / 64 * 8);
    let mut logged = [0u64; SETSIZE as usize / 64];
    for fd in 0..n {
        if word(fd)? >> (fd % 64) & 1 != 0 && is_ready(e, fd as i32) {
            logged[fd as usize / 64] |= 1 << (fd % 64);
        }
    }
    if logged.iter().all(|word| *word == 0) {
        return None;
    }
    let mut ready = native(&without_waiting(call, 4, true));
    if ready < 0 {
        return Some(ready);
    }
    for (i, logged) in logged.into_iter().enumerate().filter(|(_, logged)| *logged != 0) {
        let found = user::read::<u64>(at + i as u64 * 8)?;
        ready += (logged & !found).count_ones() as i64;
        user::write(at + i as u64 * 8, &(found | logged));
    }
    Some(ready)
}

fn epoll(e: &mut Engine, call: &Call) -> Option<i64> {
    let [fd, at, most, ..] = call.args;
    let mut ready = None;
    let (buf, rest) = halves(scratch::regions_object());
    for interest in interests(fd as i32, buf) {
        let events = interest.events & (EPOLLIN | EPOLLRDNORM);
        if events == 0 || !has_input(e, interest.fd, NESTED, rest) {
            continue;
        }
        let ready = ready.get_or_insert_with(|| native(&without_waiting(call, 3, call.nr == nr::EPOLL_PWAIT2)));
        if *ready < 0 {
            break;
        }
        let event = |i: i64| at + i as u64 * EVENT_LEN;
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
    ready
}

/// FIONREAD: as many bytes as the next read takes at most.
fn count(e: &mut Engine, call: &Call) -> Option<i64> {
    let n = waiting(e, call.fd())?;
    Some(if user::write(call.args[2], &(n as i32)) { 0 } else { err::EFAULT })
}
