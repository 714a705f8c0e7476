//! Registered files. One stays when the program closes its descriptor: another one of it is kept, high up. So does the file of a request that
//! waits.

use super::completing::sqe_flag;
use super::frame::purpose;
use super::layout::{state, Notes, Request};
use super::queues::Ring;
use super::register::{forget_eventfd, EBUSY, ENXIO};
use super::setup::{map, unmap};
use super::stepping::{step, take_frame};
use crate::calls::descriptors;
use crate::dispatch::{Call, Outcome};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::{self, Thread};
use crate::user;

const MOST_FILES: u64 = 1 << 15;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// Descriptors of registered files are no lower than that, if the program may have as many.
const FIRST_FILE: u64 = 512;
const SKIP: i32 = -2;

/// Bytes of the table of files: numbers, and behind them those to be closed.
pub fn files_len(files: u32) -> u64 {
    (files as u64 * 8).next_multiple_of(4096)
}

/// The descriptor of registered file `i`.
pub fn file(ring: &Ring, i: u32) -> Option<i32> {
    if i >= ring.head.files {
        return None;
    }
    user::read::<i32>(ring.head.files_at + i as u64 * 4).filter(|&fd| fd >= 0)
}

/// A descriptor that is kept for no file any more.
pub fn next_stale(ring: &mut Ring) -> Option<i32> {
    let head = &mut ring.head;
    head.stale = head.stale.min(head.files).checked_sub(1)?;
    user::read::<i32>(head.files_at + (head.files as u64 + head.stale as u64) * 4).filter(|&fd| fd >= 0)
}

fn make_stale(ring: &mut Ring, fd: i32) {
    let head = &mut ring.head;
    if head.stale < head.files {
        user::write(head.files_at + (head.files as u64 + head.stale as u64) * 4, &fd);
        head.stale += 1;
    }
}

/// The program closes a descriptor. Requests that wait for its file keep one of their own. Where it is a ring's, the ring's registered files go
/// first. `None`: there are none.
pub fn before_close(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    if call.nr != nr::CLOSE || !super::exist(e) {
        return None;
    }
    keep_awaited(e, call.fd());
    let notes = super::find(e, call.fd())?;
    let mut ring = Ring::load(e, notes)?;
    let has_files = forget(&mut ring) | forget_kept(&mut ring) | forget_eventfd(&mut ring);
    if !has_files {
        return None;
    }
    let (at, mut frame) = take_frame(t, &notes, purpose::CLOSE)?;
    // Then the call is made once more.
    frame.result = call.nr as i64;
    frame.regs.rip -= 2;
    Some(step(e, t, ring, at, frame))
}

/// Requests that wait for files which the program has closed are no more; whether there were any.
fn forget_kept(ring: &mut Ring) -> bool {
    let mut any = false;
    ring.each(|ring, i, request| {
        if let Some(fd) = request.kept.checked_sub(1).filter(|_| request.state == state::WAITING) {
            any = true;
            ring.end_wait();
            ring.release(i);
            ring.close(fd as i32);
        }
    });
    any
}

/// Requests that wait for the file behind `fd` get a descriptor that stays.
fn keep_awaited(e: &mut Engine, fd: i32) {
    for i in 0..e.kernel.rings.len() {
        let place = e.kernel.rings[i];
        let ring = if place.notes == 0 { None } else { Ring::load(e, Notes { at: place.notes }) };
        let Some(mut ring) = ring.filter(|ring| ring.head.waiting > 0 && ring.fd >= 0 && ring.fd != fd) else {
            continue;
        };
        ring.each(|ring, i, request| {
            let entry = &request.entry;
            let is_its = entry.fd == fd && entry.flags & sqe_flag::FIXED_FILE == 0 && request.kept == 0;
            if request.state == state::WAITING && request.events != 0 && is_its {
                if let kept @ 0.. = keep(e, fd) {
                    ring.set(i, &Request { kept: kept as u32 + 1, ..request });
                }
            }
        });
    }
}

/// All registered files become stale; whether there were any.
pub fn forget(ring: &mut Ring) -> bool {
    let mut any = false;
    for i in 0..ring.head.files {
        if let Some(fd) = file(ring, i) {
            any = true;
            user::write(ring.head.files_at + i as u64 * 4, &-1i32);
            make_stale(ring, fd);
        }
    }
    any
}

pub fn set(e: &mut Engine, t: &mut Thread, ring: &mut Ring, at: u64, count: u64, sparse: bool) -> i64 {
    let is_any = (0..ring.head.files).any(|i| file(ring, i).is_some());
    match count {
        _ if is_any => return EBUSY,
        0 => return err::EINVAL,
        n if n > MOST_FILES => return -24,
        _ => {}
    }
    if ring.head.files != 0 {
        unmap(e, t, ring.head.files_at, files_len(ring.head.files));
        (ring.head.files, ring.head.files_at) = (0, 0);
    }
    match map(e, t, files_len(count as u32)) {
        Ok(table) => (ring.head.files_at, ring.head.files) = (table, count as u32),
        Err(r) => return r,
    }
    for i in 0..count {
        user::write(ring.head.files_at + i * 4, &-1i32);
    }
    if sparse {
        return 0;
    }
    let r = update(e, ring, at, 0, count as u32);
    if r != count as i64 {
        forget(ring);
        return if err::is(r) { r } else { err::EBADF };
    }
    0
}

/// Registers `count` files, whose descriptors lie at `at`, from number `first` on: how many.
pub fn update(e: &mut Engine, ring: &mut Ring, at: u64, first: u32, count: u32) -> i64 {
    if ring.head.files == 0 {
        return ENXIO;
    }
    if first.saturating_add(count) > ring.head.files {
        return err::EINVAL;
    }
    for i in 0..count {
        let Some(fd) = user::read::<i32>(at + i as u64 * 4) else { return done(i, err::EFAULT) };
        if fd == SKIP {
            continue;
        }
        let kept = match fd {
            -1 => -1,
            fd if super::find(e, fd).is_some() => err::EBADF,
            fd => keep(e, fd),
        };
        if kept < -1 {
            return done(i, kept);
        }
        if let Some(old) = file(ring, first + i) {
            make_stale(ring, old);
        }
        user::write(ring.head.files_at + (first + i) as u64 * 4, &(kept as i32));
    }
    count as i64
}

fn done(n: u32, why: i64) -> i64 {
    if n > 0 {
        n as i64
    } else {
        why
    }
}

/// Another descriptor of the file.
pub fn keep(e: &mut Engine, fd: i32) -> i64 {
    // SAFETY: the calling thread is at the gate.
    let t = unsafe { thread::current() };
    let mut copy = |first| {
        descriptors::fcntl(e, t, &Call { nr: nr::FCNTL, args: [fd as i64 as u64, F_DUPFD_CLOEXEC, first, 0, 0, 0] })
    };
    match copy(FIRST_FILE) {
        err::EINVAL => copy(0),
        r => r,
    }
}
