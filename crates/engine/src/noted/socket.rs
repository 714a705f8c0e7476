//! Sockets: sendmmsg and recvmmsg of one message. The kernel stores its length in the header, which lies in the session.
//!
//! recvmmsg looks for a pending error before it looks for bytes, where recvmsg has them the other way round; so errors are
//! looked for first, and taken away by a call that stores them in the note.

use super::note::{how, note};
use super::transfer;
use crate::calls::message::{Header, DATA, DATA_LEN, HEAD};
use crate::ring::{op, Entry};
use crate::sys::{nr, syscall};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const POLLERR: u64 = 8;
const SOL_SOCKET: u64 = 1;
const SO_TYPE: u64 = 3;
const SO_ACCEPTCONN: u64 = 30;
const SO_ERROR: u64 = 4;
const SOCK_STREAM: u32 = 1;
const MSG_OOB: u64 = 1;
const MSG_PEEK: u64 = 2;
const MSG_DONTWAIT: u64 = 0x40;
const UNTOUCHED: u32 = !0;
/// `msg_flags` and `msg_len` in the `struct mmsghdr` at HEAD.
const FLAGS: u64 = HEAD + 48;
const LENGTH: u64 = HEAD + 56;

fn word(at: u64) -> &'static AtomicU32 {
    // SAFETY: `at` is a word of the bounce buffer, which is never unmapped.
    unsafe { &*(at as *const AtomicU32) }
}

/// Fills the header for a read or write; vectors lie in the bounce buffer already or are one.
fn place(entry: &Entry) {
    let (vectors, count) = match entry.opcode {
        op::WRITEV => (entry.addr, entry.len as u64),
        _ => (crate::calls::message::single(entry.addr, entry.len as u64), 1),
    };
    // SAFETY: the header's place in the bounce buffer.
    unsafe { (HEAD as *mut Header).write(Header { vectors, count, ..Default::default() }) };
}

pub fn write(id: u64, entry: &Entry) -> i64 {
    place(entry);
    send(id, entry.fd, MSG_DONTWAIT)
}

pub fn read(id: u64, entry: &Entry) -> i64 {
    place(entry);
    receive(id, entry.fd, MSG_DONTWAIT)
}

/// Sends the message whose header lies at HEAD.
pub fn send(id: u64, fd: i32, flags: u64) -> i64 {
    message(id, nr::SENDMMSG, fd, flags)
}

/// Receives a message into the header at HEAD.
pub fn receive(id: u64, fd: i32, flags: u64) -> i64 {
    if has_failed(fd) && flags & MSG_OOB == 0 {
        let queued = if is_stream(fd) { transfer::readable(fd).unwrap_or(0) } else { 0 };
        if queued > 0 {
            return receive_before_error(id, fd, flags);
        }
        let error = take_error(id, fd);
        if error != 0 {
            return error;
        }
    }
    message(id, nr::RECVMMSG, fd, flags)
}

fn message(id: u64, number: u64, fd: i32, flags: u64) -> i64 {
    note().begin(how::MESSAGE, fd);
    word(LENGTH).store(UNTOUCHED, Relaxed);
    note().arm(id);
    // SAFETY: the kernel checks the program's pointers; the rest lies in the bounce buffer.
    let r = unsafe { syscall!(number, fd, HEAD, 1, flags, 0) };
    if r == 1 {
        word(LENGTH).load(Relaxed) as i64
    } else {
        r
    }
}

/// The length the kernel stored for a dead predecessor.
pub fn length() -> Option<i64> {
    let n = word(LENGTH).load(Relaxed);
    (n != UNTOUCHED).then_some(n as i64)
}

/// Is there an error to be reported by the next call?
fn has_failed(fd: i32) -> bool {
    let mut p = fd as u32 as u64;
    // SAFETY: poll with time-out 0 reads and writes the eight bytes of `p`.
    unsafe { syscall!(nr::POLL, &raw mut p, 1, 0) > 0 && p >> 48 & POLLERR != 0 }
}

/// Its SO_TYPE, if it is a socket.
pub fn kind(fd: i32) -> Option<u32> {
    option(fd, SO_TYPE)
}

/// Does it wait for connections?
pub fn listens(fd: i32) -> bool {
    option(fd, SO_ACCEPTCONN) == Some(1)
}

fn option(fd: i32, which: u64) -> Option<u32> {
    let (mut value, mut len) = (0u32, 4u32);
    // SAFETY: getsockopt writes four bytes.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, SOL_SOCKET, which, &raw mut value, &raw mut len) };
    (r == 0).then_some(value)
}

/// Is it a stream socket?
pub fn is_stream(fd: i32) -> bool {
    kind(fd) == Some(SOCK_STREAM)
}

/// Bytes that came before the error: a look tells how many a call will take, and the call is made for just as many.
fn receive_before_error(id: u64, fd: i32, flags: u64) -> i64 {
    // SAFETY: the header was placed by the caller, its only vector points to the data part.
    let vector = unsafe { (*(HEAD as *const Header)).vectors as *mut [u64; 2] };
    let room = unsafe { (*vector)[1] }.min(DATA_LEN);
    note().begin(how::SIZED, fd);
    // SAFETY: both calls write to the bounce buffer.
    unsafe {
        let n = syscall!(nr::RECVFROM, fd, DATA, room, MSG_PEEK | MSG_DONTWAIT, 0, 0);
        if n <= 0 {
            return n;
        }
        (*vector)[1] = n as u64;
        note().start.store(n as u64, Relaxed);
        word(FLAGS).store(UNTOUCHED, Relaxed);
        note().arm(id);
        syscall!(nr::RECVMSG, fd, HEAD, flags)
    }
}

/// As `length`, for bytes that came before an error.
pub fn sized() -> Option<i64> {
    (word(FLAGS).load(Relaxed) != UNTOUCHED).then(|| note().start.load(Relaxed).min(DATA_LEN) as i64)
}

/// Takes the pending error away; negative, or 0 if there is none.
fn take_error(id: u64, fd: i32) -> i64 {
    let [error, len, ..] = &note().words;
    note().begin(how::SOCKET_ERROR, fd);
    error.store(UNTOUCHED as u64, Relaxed);
    len.store(4, Relaxed);
    note().arm(id);
    // SAFETY: the kernel writes four bytes to each of the two words.
    unsafe { syscall!(nr::GETSOCKOPT, fd, SOL_SOCKET, SO_ERROR, error.as_ptr(), len.as_ptr()) };
    -(error.load(Relaxed) as u32 as i32 as i64)
}

/// The error a dead predecessor took away.
pub fn taken_error() -> Option<i64> {
    match note().words[0].load(Relaxed) as u32 {
        0 | UNTOUCHED => None,
        error => Some(-(error as i64)),
    }
}
