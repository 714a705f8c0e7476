//! io_uring_register: files and buffers that entries name by number, the eventfd, and what is served at all.

use super::frame::purpose;
use super::layout::{Entry, Notes};
use super::queues::Ring;
use super::setup::{map, unmap};
use super::stepping::{step, take_frame};
use super::{files, op};
use crate::dispatch::{Call, Outcome};
use crate::state::Engine;
use crate::sys::err;
use crate::thread::Thread;
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;

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

pub const EBUSY: i64 = -16;
pub const ENXIO: i64 = -6;
const EBADFD: i64 = -77;
const MOST_BUFFERS: u64 = 1 << 14;
/// Of a table: it has no entries yet (IORING_RSRC_REGISTER_SPARSE).
const SPARSE: u32 = 1;

pub fn buffers_len(buffers: u32) -> u64 {
    (buffers as u64 * 16).next_multiple_of(4096)
}

/// Do the bytes of an entry lie in its registered buffer?
pub fn is_in_buffer(ring: &Ring, n: &Entry) -> bool {
    if n.buffer as u32 >= ring.head.buffers {
        return false;
    }
    let buffer = user::read::<[u64; 2]>(ring.head.buffers_at + n.buffer as u64 * 16);
    buffer.is_some_and(|[at, len]| n.addr >= at && n.addr.saturating_add(n.len as u64) <= at.saturating_add(len))
}

pub fn serve(e: &mut Engine, t: &mut Thread, notes: Notes, call: &Call) -> Outcome {
    let Some(mut ring) = Ring::load(e, notes) else { return Outcome::Return(err::EFAULT) };
    let [_, what, at, count, ..] = call.args;
    let (what, count) = (what as u32 as u64, count as u32 as u64);
    let r = match what {
        request::FILES => files::set(e, t, &mut ring, at, count, false),
        request::FILES2 => match table(at, count) {
            Ok((n, flags, data)) => files::set(e, t, &mut ring, data, n, flags & SPARSE != 0),
            Err(r) => r,
        },
        request::FILES_UPDATE => match user::read::<[u64; 2]>(at) {
            Some([offset, fds]) => files::update(e, &mut ring, fds, offset as u32, count as u32),
            None => err::EFAULT,
        },
        request::FILES_UPDATE2 => match user::read::<[u64; 4]>(at) {
            Some([offset, fds, 0, n]) => files::update(e, &mut ring, fds, offset as u32, n as u32),
            Some(_) => err::EINVAL,
            None => err::EFAULT,
        },
        request::UNREGISTER_FILES if ring.head.files == 0 => ENXIO,
        request::UNREGISTER_FILES => {
            files::forget(&mut ring);
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
        request::EVENTFD | request::EVENTFD_ASYNC => set_eventfd(e, &mut ring, at, count),
        request::UNREGISTER_EVENTFD if !forget_eventfd(&mut ring) => ENXIO,
        request::UNREGISTER_EVENTFD => 0,
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
    if ring.head.stale == 0 && ring.head.ready[0] == 0 {
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

/// The eventfd stays, too, when the program closes its descriptor.
fn set_eventfd(e: &mut Engine, ring: &mut Ring, at: u64, count: u64) -> i64 {
    let Some(fd) = user::read::<i32>(at) else { return err::EFAULT };
    if count != 1 || fd >= 0 && e.fds.kind(fd) != kind::ANONYMOUS && e.fds.is_open(fd) {
        return err::EINVAL;
    }
    if ring.head.eventfd != 0 {
        return EBUSY;
    }
    match files::keep(e, fd) {
        kept @ 0.. => {
            (ring.head.eventfd, ring.head.untold) = (kept as u32 + 1, 0);
            0
        }
        why => why,
    }
}

/// The eventfd is told no more; whether there was one.
pub fn forget_eventfd(ring: &mut Ring) -> bool {
    let fd = core::mem::take(&mut ring.head.eventfd).checked_sub(1);
    ring.head.untold = 0;
    if let Some(fd) = fd {
        ring.close(fd as i32);
    }
    fd.is_some()
}

/// `struct io_uring_probe`: 16 bytes, the first of them the last operation; then 8 bytes an operation.
fn probe(at: u64, count: u64) -> i64 {
    const SUPPORTED: u16 = 1;
    const LAST: u8 = op::LISTEN;
    if count > 256 {
        return err::EINVAL;
    }
    let n = count.min(LAST as u64 + 1);
    if !user::write(at, &[LAST as u64 | n << 8, 0]) {
        return err::EFAULT;
    }
    for opcode in 0..n {
        let flags = if op::is_served(opcode as u8) { SUPPORTED } else { 0 };
        if !user::write(at + 16 + opcode * 8, &(opcode | (flags as u64) << 16)) {
            return err::EFAULT;
        }
    }
    0
}
