//! A reply as it is sent: in one go, without waiting, by plain calls. The bounce buffer is left alone, where the result of the call lies
//! that the last commit stands before.

use crate::calls::message::{Header, Vectors};
use crate::dispatch::{native, Call};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::Acquire;

const MSG_DONTWAIT: u64 = 0x40;
const MSG_NOSIGNAL: u64 = 0x4000;
const MSG_MORE: u64 = 0x8000;
const HARMLESS: u64 = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE;
const SEEK_CUR: u64 = 1;
const VECTOR_LEN: u64 = 16;

/// How many bytes a call sends, if it is one that can be a reply.
pub fn length(call: &Call) -> Option<u64> {
    let a = call.args;
    match call.nr {
        nr::WRITE => Some(a[2]),
        nr::WRITEV => Some(Vectors::new(a[1], a[2])?.total),
        nr::SENDTO if a[3] & !HARMLESS == 0 && a[4] == 0 => Some(a[2]),
        nr::SENDMSG if a[2] & !HARMLESS == 0 => {
            let header = user::read::<Header>(a[1])?;
            let plain = header.name == 0 && header.control_len == 0;
            plain.then(|| Vectors::new(header.vectors, header.count)).flatten().map(|vectors| vectors.total)
        }
        nr::SENDFILE => file_length(call),
        _ => None,
    }
}

/// What the file has from the position on, and the call is about.
fn file_length(call: &Call) -> Option<u64> {
    let a = call.args;
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes, of which the seventh word is the size; lseek(fd, 0, SEEK_CUR) has no effect.
    let (r, at) = unsafe { (syscall!(nr::FSTAT, a[1], st.as_mut_ptr()), syscall!(nr::LSEEK, a[1], 0, SEEK_CUR)) };
    let at = if a[2] != 0 { user::read::<u64>(a[2])? } else { at as u64 };
    (r == 0 && !err::is(at as i64)).then(|| a[3].min(st[6].saturating_sub(at)))
}

fn flags(call: &Call) -> u64 {
    match call.nr {
        nr::SENDTO => call.args[3],
        nr::SENDMSG => call.args[2],
        _ => 0,
    }
}

/// Is it content with less than all? `is_nonblocking`: so it is with its descriptor.
pub fn wants_no_more(call: &Call, is_nonblocking: bool) -> bool {
    is_nonblocking || flags(call) & MSG_DONTWAIT != 0
}

/// The address and number of the call's vectors; none: it has one buffer.
fn vectors(call: &Call) -> Option<(u64, u64)> {
    let a = call.args;
    match call.nr {
        nr::WRITEV => Some((a[1], a[2])),
        nr::SENDMSG => user::read::<Header>(a[1]).map(|header| (header.vectors, header.count)),
        _ => None,
    }
}

/// Sends what is left of a call after its first `done` bytes, as far as there is room.
pub fn send(t: &Thread, call: &Call, done: u64) -> i64 {
    let a = call.args;
    if call.nr == nr::SENDFILE {
        return send_file(t, call, done);
    }
    // Whoever was told that something was sent is not to get a signal for what was not.
    let flags = flags(call) | MSG_DONTWAIT | if done > 0 { MSG_NOSIGNAL } else { 0 };
    let Some((at, count)) = vectors(call) else {
        return message(call, [a[1] + done, a[2] - done.min(a[2])].as_ptr() as u64, 1, flags);
    };
    let (mut skip, mut first, mut sent) = (done, 0, 0);
    while skip > 0 && first < count {
        let Some([base, len]) = user::read::<[u64; 2]>(at + first * VECTOR_LEN) else { return err::EFAULT };
        first += 1;
        if skip < len {
            sent = message(call, [base + skip, len - skip].as_ptr() as u64, 1, flags);
            if sent < (len - skip) as i64 || first == count {
                return sent;
            }
        }
        skip = skip.saturating_sub(len);
    }
    match message(call, at + first * VECTOR_LEN, count - first, flags) {
        r if sent > 0 => sent + r.max(0),
        r => r,
    }
}

/// Signals cut it short even where there is room, and what comes before its first bytes makes it EINTR. A knock of the engine's own is nothing
/// that the program may notice: it would take the one for the end of the room, and wait for more, and the other for a failure.
fn send_file(t: &Thread, call: &Call, done: u64) -> i64 {
    let (mut rest, mut sent) = (*call, 0);
    rest.args[3] -= done.min(rest.args[3]);
    loop {
        let r = native(&rest);
        let n = r.max(0) as u64;
        (rest.args[3], sent) = (rest.args[3] - n.min(rest.args[3]), sent + n as i64);
        let is_cut_short = n > 0 && rest.args[3] > 0 && t.pending.load(Acquire) != 0;
        if r != err::EINTR && !is_cut_short {
            return if sent > 0 { sent } else { r };
        }
    }
}

fn message(call: &Call, vectors: u64, count: u64, flags: u64) -> i64 {
    let header = Header { vectors, count, ..Header::default() };
    // SAFETY: the kernel checks the program's pointers; the header, and a vector of ours, live until the call is over.
    unsafe { syscall!(nr::SENDMSG, call.fd(), &raw const header, flags) }
}

/// Calls `f` with the bytes `from..to` of a call, piece by piece, as they are in the program's memory. False: they are a file's, or cannot
/// be read.
pub fn each_piece(call: &Call, from: u64, to: u64, f: &mut dyn FnMut(&[u8])) -> bool {
    let a = call.args;
    let Some((at, count)) = vectors(call) else {
        return matches!(call.nr, nr::WRITE | nr::SENDTO) && read_pieces(a[1] + from, to - from, f);
    };
    let mut passed = 0;
    for i in 0..count {
        let Some([base, len]) = user::read::<[u64; 2]>(at + i * VECTOR_LEN) else { return false };
        let (begin, end) = (from.clamp(passed, passed + len), to.clamp(passed, passed + len));
        if !read_pieces(base + (begin - passed), end - begin, f) {
            return false;
        }
        passed += len;
    }
    true
}

fn read_pieces(mut at: u64, mut len: u64, f: &mut dyn FnMut(&[u8])) -> bool {
    let mut piece = [0; 2048];
    while len > 0 {
        let n = len.min(piece.len() as u64);
        if !user::read_bytes(at, &mut piece[..n as usize]) {
            return false;
        }
        f(&piece[..n as usize]);
        (at, len) = (at + n, len - n);
    }
    true
}
