//! Pipes. Input goes by splice straight into the session, and the kernel counts it there; output goes by splice from the
//! transfer pipe, and what is left there counts it.
//!
//! A pipe holds sixteen pieces, not bytes, and every splice adds a piece: with a reader that does not read, small writes
//! would stop earlier than the program may expect of a pipe. Then bytes are put into the last page by an ordinary
//! write; the number of bytes in the pipe tells whether that happened, unless the reader wakes up in that very call.

use super::note::{how, note};
use super::{plain, transfer};
use crate::dispatch::{issue, Call};
use crate::operation::{is_nonblocking, poll_word, POLLOUT};
use crate::ring::Entry;
use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::Relaxed;

const O_DIRECT: i64 = 0o40000;
const RWF_NOWAIT: u64 = 8;
const PAGE: usize = 4096;
/// How long a reader may keep a small write waiting before it counts as one that does not read; milliseconds.
const PATIENCE: u64 = 2;

/// Packets keep their bounds in reads and writes only.
fn is_packets(fd: i32) -> bool {
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, 3) };
    !err::is(flags) && flags & O_DIRECT != 0
}

pub fn read(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    if is_packets(entry.fd) || !transfer::may_deposit() {
        return plain(id, entry);
    }
    note().begin(how::SPLICED, entry.fd);
    transfer::count_from(entry.addr);
    note().arm(id);
    transfer::deposit(e, entry.fd, entry.len as u64)
}

pub fn write(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    let fd = entry.fd;
    if is_packets(fd) {
        return plain(id, entry);
    }
    note().begin(how::STAGED, fd);
    let staged = transfer::stage(e, entry);
    if staged <= 0 {
        return staged;
    }
    note().staged.store(staged as u64, Relaxed);
    note().arm(id);
    let mut moved = 0;
    loop {
        let r = transfer::send(e, fd, (staged - moved) as u64);
        match r {
            1.. => moved += r,
            err::EAGAIN => {
                let r = make_room(e, fd, moved, staged);
                if r != 0 {
                    return if moved > 0 { moved } else { r };
                }
            }
            _ => return if moved > 0 { moved } else { r },
        }
        if moved == staged {
            transfer::sent_all(e);
            return moved;
        }
    }
}

/// The pipe has no place for another piece. 0: now it has; positive: what is left was put into the last page.
fn make_room(e: &mut Engine, fd: i32, moved: i64, staged: i64) -> i64 {
    let blocks = !is_nonblocking(fd);
    let small = moved == 0 && (staged as usize) < PAGE;
    let (stalled, bytes) = e.transfer.stalled;
    let known = stalled == fd && transfer::readable(fd).is_some_and(|n| n >= bytes);
    if blocks && !(small && known) {
        let patience = if small { PATIENCE } else { u64::MAX };
        let r = issue(&Call { nr: nr::POLL, args: [poll_word(fd, POLLOUT), 1, patience, 0, 0, 0] });
        if r != 0 {
            return r.min(0);
        }
    }
    if small {
        return merge(e, fd, staged as usize);
    }
    err::EAGAIN
}

/// Takes the bytes back from the transfer pipe and puts them into the last page of the program's pipe, if it has room.
fn merge(e: &mut Engine, fd: i32, len: usize) -> i64 {
    let Some(before) = transfer::readable(fd) else { return err::EAGAIN };
    note().merging.store(before + 1, Relaxed);
    let mut buf = [0u8; PAGE];
    // SAFETY: both calls use the buffer, which is longer than `len`.
    let r = unsafe {
        syscall!(nr::READ, e.own_fd(OwnFd::TransferRead), buf.as_mut_ptr(), len);
        let vector = [buf.as_ptr() as u64, len as u64];
        syscall!(nr::PWRITEV2, fd, vector.as_ptr(), 1, !0u64, !0u64, RWF_NOWAIT)
    };
    transfer::sent_all(e);
    e.transfer.stalled = (fd, before + r.max(0) as u64);
    // Kernels before 6.4 cannot write to a pipe without waiting.
    if r == err::EOPNOTSUPP {
        return err::EAGAIN;
    }
    r
}
