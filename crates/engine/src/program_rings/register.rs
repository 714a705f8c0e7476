//! io_uring_register: files and buffers that entries name by number, the eventfd, and what is served at all.
//!
//! A registered file stays when the program closes its descriptor: another one of it is kept, high up.

use super::completing::sqe_flag;
use super::layout::{purpose, state, Entry, Notes, Request};
use super::operations;
use super::queues::Ring;
use super::setup::{map, unmap};
use super::stepping::{end, step, take_frame};
use crate::calls::descriptors;
use crate::dispatch::{Call, Outcome};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::{self, Thread};
use crate::user;

mod request {
    pub const BUFFERS: u64 = 0;
    pub const UNREGISTER_BUFFERS: u64 = 1;
    pub const FILES: u64 = 2;
    pub const UNREGISTER_FILES: u64 = 3;
    pub const EVENTFD: u64 = 4;
    pub const UNREGISTER_EVENTFD: u64 = 5;
    pub const FILES_UPDATE: u64 = 6;
    pub const EVENTFD_ASYNC: u64 = 7;
    pub const PROBE: u64 = 8;
    pub const ENABLE_RINGS: u64 = 12;
    pub const FILES2: u64 = 13;
    pub const FILES_UPDATE2: u64 = 14;
    pub const BUFFERS2: u64 = 15;
    pub const IOWQ_AFF: u64 = 17;
    pub const UNREGISTER_IOWQ_AFF: u64 = 18;
    pub const IOWQ_MAX_WORKERS: u64 = 19;
}

const EBUSY: i64 = -16;
const ENXIO: i64 = -6;
const EBADFD: i64 = -77;
const MOST_FILES: u64 = 1 << 15;
const MOST_BUFFERS: u64 = 1 << 14;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// Descriptors of registered files are no lower than that, if the program may have as many.
const FIRST_FILE: u64 = 512;
const SKIP: i32 = -2;
/// Of a table: it has no entries yet (IORING_RSRC_REGISTER_SPARSE).
const SPARSE: u32 = 1;

/// Bytes of the table of files: numbers, and behind them those to be closed.
pub fn files_len(files: u32) -> u64 {
    (files as u64 * 8).next_multiple_of(4096)
}

pub fn buffers_len(buffers: u32) -> u64 {
    (buffers as u64 * 16).next_multiple_of(4096)
}

/// The descriptor of registered file `i`.
pub fn file(ring: &Ring, i: u32) -> Option<i32> {
    if i >= ring.head.files {
        return None;
    }
    user::read::<i32>(ring.head.files_at + i as u64 * 4).filter(|&fd| fd >= 0)
}

/// Do the bytes of an entry lie in its registered buffer?
pub fn is_in_buffer(ring: &Ring, n: &Entry) -> bool {
    if n.buffer as u32 >= ring.head.buffers {
        return false;
    }
    let buffer = user::read::<[u64; 2]>(ring.head.buffers_at + n.buffer as u64 * 16);
    buffer.is_some_and(|[at, len]| n.addr >= at && n.addr.saturating_add(n.len as u64) <= at.saturating_add(len))
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

pub fn serve(e: &mut Engine, t: &mut Thread, notes: Notes, call: &Call) -> Outcome {
    let Some(mut ring) = Ring::load(e, notes) else { return Outcome::Return(err::EFAULT) };
    let [_, what, at, count, ..] = call.args;
    let (what, count) = (what as u32 as u64, count as u32 as u64);
    let r = match what {
        request::FILES => set_files(e, t, &mut ring, at, count, false),
        request::FILES2 => match table(at, count) {
            Ok((n, flags, data)) => set_files(e, t, &mut ring, data, n, flags & SPARSE != 0),
            Err(r) => r,
        },
        request::FILES_UPDATE => match user::read::<[u64; 2]>(at) {
            Some([offset, fds]) => update(e, t, &mut ring, fds, offset as u32, count as u32),
            None => err::EFAULT,
        },
        request::FILES_UPDATE2 => match user::read::<[u64; 4]>(at) {
            Some([offset, fds, 0, n]) => update(e, t, &mut ring, fds, offset as u32, n as u32),
            Some(_) => err::EINVAL,
            None => err::EFAULT,
        },
        request::UNREGISTER_FILES if ring.head.files == 0 => ENXIO,
        request::UNREGISTER_FILES => {
            forget_files(&mut ring);
            0
        }
        request::BUFFERS => set_buffers(e, t, &mut ring, at, count, false),
        request::BUFFERS2 => match table(at, count) {
            Ok((n, flags, data)) => set_buffers(e, t, &mut ring, data, n, flags & SPARSE != 0),
            Err(r) => r,
        },
        request::UNREGISTER_BUFFERS if ring.head.buffers == 0 => ENXIO,
        request::UNREGISTER_BUFFERS => {
            unmap(e, t, ring.head.buffers_at, buffers_len(ring.head.buffers));
            (ring.head.buffers, ring.head.buffers_at) = (0, 0);
            0
        }
        request::EVENTFD | request::EVENTFD_ASYNC => set_eventfd(&mut ring, at, count),
        request::UNREGISTER_EVENTFD if ring.head.eventfd == 0 => ENXIO,
        request::UNREGISTER_EVENTFD => {
            (ring.head.eventfd, ring.head.untold) = (0, 0);
            0
        }
        request::PROBE => probe(at, count),
        request::ENABLE_RINGS if ring.head.is_disabled == 0 => EBADFD,
        request::ENABLE_RINGS => {
            ring.head.is_disabled = 0;
            0
        }
        // There are no workers to be placed or counted.
        request::IOWQ_AFF | request::UNREGISTER_IOWQ_AFF => 0,
        request::IOWQ_MAX_WORKERS => {
            if user::write(at, &[0u32; 2]) {
                0
            } else {
                err::EFAULT
            }
        }
        _ => err::EINVAL,
    };
    finish(e, t, ring, r)
}

/// Ends the call with `r`, once descriptors that are of no use any more are closed.
fn finish(e: &mut Engine, t: &mut Thread, ring: Ring, r: i64) -> Outcome {
    if ring.head.stale == 0 {
        ring.save();
        return Outcome::Return(r);
    }
    match take_frame(t, &ring.notes, purpose::CLOSE) {
        Some((at, mut frame)) => {
            frame.result = r;
            step(e, t, ring, at, frame)
        }
        None => {
            ring.save();
            Outcome::Return(r)
        }
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
    let mut ring = Ring::load(e, notes).filter(|ring| ring.head.files != 0)?;
    let (at, mut frame) = take_frame(t, &notes, purpose::CLOSE)?;
    if !forget_files(&mut ring) {
        return None;
    }
    // Then the call is made once more.
    frame.result = call.nr as i64;
    frame.regs.rip -= 2;
    Some(match ring.head.stale {
        0 => end(t, &ring, at, &frame, frame.result),
        _ => step(e, t, ring, at, frame),
    })
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
fn forget_files(ring: &mut Ring) -> bool {
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

/// `struct io_uring_rsrc_register`: how many, flags, where.
fn table(at: u64, len: u64) -> Result<(u64, u32, u64), i64> {
    if len != 32 {
        return Err(err::EINVAL);
    }
    let [head, unused, data, tags] = user::read::<[u64; 4]>(at).ok_or(err::EFAULT)?;
    let (n, flags) = (head & 0xffff_ffff, (head >> 32) as u32);
    if unused != 0 || tags != 0 || flags & !SPARSE != 0 || flags & SPARSE != 0 && data != 0 {
        return Err(err::EINVAL);
    }
    Ok((n, flags, data))
}

fn set_files(e: &mut Engine, t: &mut Thread, ring: &mut Ring, at: u64, count: u64, sparse: bool) -> i64 {
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
    let r = update(e, t, ring, at, 0, count as u32);
    if r != count as i64 {
        forget_files(ring);
        return if err::is(r) { r } else { err::EBADF };
    }
    0
}

/// Registers `count` files, whose descriptors lie at `at`, from number `first` on: how many.
pub fn update(e: &mut Engine, t: &Thread, ring: &mut Ring, at: u64, first: u32, count: u32) -> i64 {
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
        let _ = t;
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
fn keep(e: &mut Engine, fd: i32) -> i64 {
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

fn set_buffers(e: &mut Engine, t: &mut Thread, ring: &mut Ring, at: u64, count: u64, sparse: bool) -> i64 {
    match count {
        _ if ring.head.buffers != 0 => return EBUSY,
        1..=MOST_BUFFERS => {}
        _ => return err::EINVAL,
    }
    let buffers = match map(e, t, buffers_len(count as u32)) {
        Ok(buffers) => buffers,
        Err(r) => return r,
    };
    for i in 0..if sparse { 0 } else { count } {
        let buffer = user::read::<[u64; 2]>(at + i * 16);
        if buffer.is_none_or(|buffer| !user::write(buffers + i * 16, &buffer)) {
            unmap(e, t, buffers, buffers_len(count as u32));
            return err::EFAULT;
        }
    }
    (ring.head.buffers_at, ring.head.buffers) = (buffers, count as u32);
    0
}

fn set_eventfd(ring: &mut Ring, at: u64, count: u64) -> i64 {
    match user::read::<i32>(at) {
        _ if count != 1 => err::EINVAL,
        _ if ring.head.eventfd != 0 => EBUSY,
        None => err::EFAULT,
        Some(fd) if fd < 0 => err::EBADF,
        Some(fd) => {
            (ring.head.eventfd, ring.head.untold) = (fd as u32 + 1, 0);
            0
        }
    }
}

/// `struct io_uring_probe`: 16 bytes, the first of them the last operation; then 8 bytes an operation.
fn probe(at: u64, count: u64) -> i64 {
    const SUPPORTED: u16 = 1;
    const LAST: u8 = operations::op::LISTEN;
    if count > 256 {
        return err::EINVAL;
    }
    let n = count.min(LAST as u64 + 1);
    if !user::write(at, &[LAST as u64 | n << 8, 0]) {
        return err::EFAULT;
    }
    for opcode in 0..n {
        let flags = if operations::is_served(opcode as u8) { SUPPORTED } else { 0 };
        if !user::write(at + 16 + opcode * 8, &(opcode | (flags as u64) << 16)) {
            return err::EFAULT;
        }
    }
    0
}
