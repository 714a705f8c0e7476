//! The transfer pipe: a pipe of the engine's own, whose ends the anchor keeps, so that what is in it outlives the process.
//!
//! Bytes on their way out wait in it and leave it by splice, which takes them out of here and puts them there in one
//! call: how many are left tells how many went. Pages are handed over, never lent: nobody can change them afterwards.
//! Bytes on their way in arrive in it likewise.

use super::note::{how, note};
use crate::calls::message::DATA_LEN;
use crate::dispatch::{issue, Call};
use crate::ring::{op, Entry};
use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::Relaxed;
use outlast_image::layout::SESSION_BASE;

pub const SPLICE_NONBLOCK: u64 = 2;
const FIONREAD: u64 = 0x541b;
const F_GETPIPE_SZ: u64 = 1032;
const O_NONBLOCK_CLOEXEC: u64 = 0o4000 | 0o2000000;
/// Most bytes in one splice; also what a pipe holds by default.
pub const MOST: u64 = 64 << 10;

/// What this process knows of the transfer pipe.
#[derive(Default)]
pub struct Transfer {
    /// It is known to be empty.
    empty: bool,
    /// A pipe of the program whose reader does not read, and how many bytes were in it.
    pub stalled: (i32, u64),
}

impl Transfer {
    pub const fn new() -> Transfer {
        Transfer { empty: false, stalled: (-1, 0) }
    }
}

/// Makes the pipe, unless the anchor has kept it.
pub fn set_up(e: &mut Engine) {
    e.transfer = Transfer::new();
    let ends = [e.own_fd(OwnFd::TransferRead), e.own_fd(OwnFd::TransferWrite)];
    make_pipe(ends);
}

/// Makes a pipe with these ends, unless the anchor has kept it.
pub fn make_pipe(ends: [i32; 2]) {
    // SAFETY: the numbers are the engine's own; asking for a size has no effect.
    unsafe {
        if ends.iter().all(|&fd| syscall!(nr::FCNTL, fd, F_GETPIPE_SZ) > 0) {
            return;
        }
        let mut made = [0i32; 2];
        if err::is(syscall!(nr::PIPE2, made.as_mut_ptr(), O_NONBLOCK_CLOEXEC)) {
            return;
        }
        for (from, to) in made.into_iter().zip(ends) {
            syscall!(nr::DUP3, from, to, 0o2000000);
            syscall!(nr::CLOSE, from);
        }
    }
}

/// Bytes that can be read from `fd` now.
pub fn readable(fd: i32) -> Option<u64> {
    let mut n = 0i32;
    // SAFETY: FIONREAD writes four bytes.
    let r = unsafe { syscall!(nr::IOCTL, fd, FIONREAD, &raw mut n) };
    (r == 0 && n >= 0).then_some(n as u64)
}

/// Bytes in the transfer pipe.
pub fn waiting(e: &Engine) -> u64 {
    readable(e.own_fd(OwnFd::TransferRead)).unwrap_or(0)
}

/// Throws away what a part that was given up left behind.
pub fn clear(e: &mut Engine) {
    if e.transfer.empty {
        return;
    }
    drain(e.own_fd(OwnFd::TransferRead));
    e.transfer.empty = true;
}

/// Empties a pipe of the engine's.
pub fn drain(fd: i32) {
    let mut buf = [0u8; 4096];
    // SAFETY: reads into the buffer; the pipe never blocks.
    while unsafe { syscall!(nr::READ, fd, buf.as_mut_ptr(), buf.len()) } > 0 {}
}

/// Copies the bytes of a WRITE or WRITEV into the pipe, as many as fit. A bad pointer is the program's own EFAULT.
pub fn stage(e: &mut Engine, entry: &Entry) -> i64 {
    clear(e);
    let number = if entry.opcode == op::WRITEV { nr::WRITEV } else { nr::WRITE };
    // SAFETY: the kernel checks the program's pointers.
    let r = unsafe { syscall!(number, e.own_fd(OwnFd::TransferWrite), entry.addr, entry.len) };
    e.transfer.empty = r <= 0;
    // Full although it is empty: there is no pipe, or no memory for one.
    if r == err::EAGAIN {
        return err::ENOMEM;
    }
    r
}

/// The note of call `id`, and the bytes of its `entry` staged for it: how many. From here on what is left in the pipe tells
/// how many were sent. 0 or an error: there is nothing to be sent.
pub fn begin(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    note().begin(how::STAGED, entry.fd);
    let staged = stage(e, entry);
    if staged > 0 {
        note().staged.store(staged as u64, Relaxed);
        note().arm(id);
    }
    staged
}

/// Moves up to `len` bytes on to `fd`. May wait if `fd` does; a signal ends the wait.
pub fn send(e: &mut Engine, fd: i32, len: u64) -> i64 {
    let args = [e.own_fd(OwnFd::TransferRead) as u64, 0, fd as u64, 0, len, SPLICE_NONBLOCK];
    issue(&Call { nr: nr::SPLICE, args })
}

/// How much of what was staged a dead predecessor sent; `None`: nothing, or the transfer pipe died with the anchor.
pub fn sent(e: &Engine) -> Option<i64> {
    let left = readable(e.own_fd(OwnFd::TransferRead))?;
    let moved = note().staged.load(Relaxed).saturating_sub(left);
    (moved > 0).then_some(moved.min(i32::MAX as u64) as i64)
}

/// Everything that was staged has left.
pub fn sent_all(e: &mut Engine) {
    e.transfer.empty = true;
}

/// Takes up to `len` bytes from `fd` into the empty pipe. May wait if `fd` does.
pub fn take(e: &mut Engine, fd: i32, len: u64) -> i64 {
    e.transfer.empty = false;
    issue(&Call { nr: nr::SPLICE, args: [fd as u64, 0, e.own_fd(OwnFd::TransferWrite) as u64, 0, len.min(MOST), 0] })
}

/// Moves what is in pipe `fd` into the session, up to `len` bytes from the note's offset on, which the kernel moves along.
pub fn deposit(e: &Engine, fd: i32, len: u64) -> i64 {
    // SAFETY: the kernel writes bytes of the bounce buffer, through the session's file, and the note's offset.
    unsafe { syscall!(nr::SPLICE, fd, 0, e.own_fd(OwnFd::Session), note().offset_address(), len, SPLICE_NONBLOCK) }
}

/// Moves all of the transfer pipe into the session; the number of bytes that lie there now.
pub fn collect(e: &mut Engine) -> i64 {
    while waiting(e) > 0 {
        let r = deposit(e, e.own_fd(OwnFd::TransferRead), MOST);
        if r <= 0 {
            return r;
        }
    }
    e.transfer.empty = true;
    (note().offset.load(Relaxed).wrapping_sub(note().start.load(Relaxed))).min(MOST) as i64
}

/// Begins to count bytes that land at `addr` of the session.
pub fn count_from(addr: u64) {
    let offset = addr - SESSION_BASE;
    note().start.store(offset, Relaxed);
    note().offset.store(offset, Relaxed);
}

/// What a dead predecessor's kernel counted.
pub fn moved() -> Option<i64> {
    let n = note().offset.load(Relaxed).wrapping_sub(note().start.load(Relaxed));
    (n > 0 && n <= DATA_LEN).then_some(n as i64)
}

/// May this process write to the session's file? A small RLIMIT_FSIZE forbids it, with a signal.
pub fn may_deposit() -> bool {
    let mut limit = [0u64; 2];
    // SAFETY: getrlimit writes two words.
    unsafe { syscall!(nr::GETRLIMIT, 1, limit.as_mut_ptr()) };
    limit[0] >= outlast_image::layout::SESSION_LEN
}
