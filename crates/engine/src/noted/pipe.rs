//! Pipes. Input goes by splice straight into the session, and the kernel counts it there; output goes by splice from the
//! transfer pipe, and what is left there counts it.
//!
//! A pipe holds sixteen pieces, whatever their size, and every splice adds a piece: with a reader that does not read,
//! small writes would stop long before the 64 KiB that a program may expect. To such a pipe they go as ordinary
//! writes, which fill its last page, and of which a completion tells; where there is none, how many bytes are in the pipe tells, unless
//! the reader wakes up in that very call.

use super::note::{how, note};
use super::{completions, plain, transfer};
use crate::dispatch::{issue, Call};
use crate::operation::{is_nonblocking, POLLOUT};
use crate::ring::{op, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::world;
use core::sync::atomic::Ordering::Relaxed;

const O_DIRECT: i64 = 0o40000;
const O_WRONLY_NONBLOCK: u64 = 0o4001;
const F_SETPIPE_SZ: u64 = 1031;
const F_GETPIPE_SZ: u64 = 1032;
/// Bytes that a pipe holds unless somebody has asked for another size.
const DEFAULT_ROOM: u64 = 64 << 10;
/// How long a reader may leave a pipe without a place for another piece before it counts as one that does not read;
/// milliseconds.
const PATIENCE: u64 = 2;

/// Packets keep their bounds in reads and writes only.
fn is_packets(fd: i32) -> bool {
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, 3) };
    !err::is(flags) && flags & O_DIRECT != 0
}

pub fn read(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    if is_packets(entry.fd) || !transfer::may_deposit() {
        return plain(e, id, entry);
    }
    note().begin(how::SPLICED, entry.fd);
    transfer::count_from(entry.addr);
    note().arm(id);
    transfer::deposit(e, entry.fd, entry.len as u64)
}

pub fn write(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    let fd = entry.fd;
    if is_packets(fd) {
        return plain(e, id, entry);
    }
    if is_stalled(e, fd) {
        let r = fill(e, id, entry);
        if r != err::EAGAIN {
            return r;
        }
    }
    let staged = transfer::begin(e, id, entry);
    if staged <= 0 {
        return staged;
    }
    let mut moved = 0;
    while moved < staged {
        let r = match transfer::send(e, fd, (staged - moved) as u64) {
            err::EAGAIN => match await_place(fd, moved) {
                err::EAGAIN if moved == 0 => return fill(e, id, entry),
                r => r,
            },
            r => r,
        };
        if r < 0 {
            return if moved > 0 { moved } else { r };
        }
        moved += r;
    }
    transfer::sent_all(e);
    moved
}

/// Waits until the pipe has a place for another piece, if the program may wait, and for the rest of a piece of which `moved` bytes
/// have gone as long as it takes. 0: it has. Among several threads nobody waits here: the reader may be one that needs the lock.
fn await_place(fd: i32, moved: i64) -> i64 {
    if is_nonblocking(fd) || world::has_several() {
        return err::EAGAIN;
    }
    let patience_ms = if moved > 0 { u64::MAX } else { PATIENCE };
    let mut word = fd as u32 as u64 | (POLLOUT as u64) << 32;
    match issue(&Call { nr: nr::POLL, args: [(&raw mut word) as u64, 1, patience_ms, 0, 0, 0] }) {
        0 => err::EAGAIN,
        r => r.min(0),
    }
}

/// Has the reader taken nothing since it was found not to read?
fn is_stalled(e: &mut Engine, fd: i32) -> bool {
    let (pipe, bytes) = e.transfer.stalled;
    let still = pipe == fd && transfer::readable(fd).is_some_and(|n| n >= bytes);
    if pipe == fd && !still {
        e.transfer.stalled = (-1, 0);
    }
    still
}

/// Writes to a pipe whose reader does not read, as far as a pipe of the default size would take it.
fn fill(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    let fd = entry.fd;
    loop {
        let Some(before) = transfer::readable(fd) else { return err::EAGAIN };
        let r = without_waiting(fd, |now| {
            completions::run(e, id, entry, now).unwrap_or_else(|| count(id, entry, now, before))
        });
        e.transfer.stalled = (fd, before + r.max(0) as u64);
        if r != err::EAGAIN || before + entry.len as u64 > DEFAULT_ROOM || entry.opcode == op::WRITEV || !grow(fd) {
            return r;
        }
    }
}

/// The write of `entry` to a pipe that held `before` bytes, by a descriptor that does not wait. Who reads there before a successor looks
/// hides it.
fn count(id: u64, entry: &Entry, fd: i32, before: u64) -> i64 {
    note().begin(how::COUNTED, entry.fd);
    note().start.store(before, Relaxed);
    note().arm(id);
    let number = if entry.opcode == op::WRITEV { nr::WRITEV } else { nr::WRITE };
    // SAFETY: the kernel checks the program's pointers.
    unsafe { syscall!(number, fd, entry.addr, entry.len) }
}

/// Calls `write` with a descriptor of the pipe that does not wait. It is opened once more for that if the program's waits: to change its
/// flags would change them for others too.
fn without_waiting(fd: i32, write: impl FnOnce(i32) -> i64) -> i64 {
    if is_nonblocking(fd) {
        return write(fd);
    }
    crate::proc::open_again(fd, O_WRONLY_NONBLOCK).map_or(err::EAGAIN, |pipe| write(pipe.fd as i32))
}

/// More places, so that what is in them comes to as many bytes as the program may expect.
fn grow(fd: i32) -> bool {
    // SAFETY: changes nothing that the program reads but the size.
    unsafe {
        let size = syscall!(nr::FCNTL, fd, F_GETPIPE_SZ);
        size > 0 && syscall!(nr::FCNTL, fd, F_SETPIPE_SZ, size * 2) > 0
    }
}

/// Bytes that a dead predecessor filled in.
pub fn filled() -> Option<i64> {
    let now = transfer::readable(note().fd.load(Relaxed) as i32)?;
    let grown = now.saturating_sub(note().start.load(Relaxed)).min(i32::MAX as u64);
    (grown > 0).then_some(grown as i64)
}
