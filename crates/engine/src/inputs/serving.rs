//! Reads from the log.

use super::log::{bytes_of, taken};
use crate::calls::message::{Header, Vectors, DATA, DATA_LEN};
use crate::dispatch::Call;
use crate::operation::is_nonblocking;
use crate::replies;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;

const TEE: u64 = 276;
const MSG_PEEK: u64 = 2;
const MSG_DONTWAIT: u64 = 0x40;
const MSG_TRUNC: u64 = 0x20;
const MSG_ERRQUEUE: u64 = 0x2000;

/// Bytes that the log has for the next read from `fd`; `None`: nothing, not even an end or an error.
pub fn waiting(e: &mut Engine, fd: i32) -> Option<u64> {
    if e.inputs.is_empty() {
        return None;
    }
    let source = e.fds.source(fd)?;
    let is_terminal = e.fds.kind(fd) == kind::TERMINAL;
    let reached = replies::reached(e, source);
    e.inputs.left(source, is_terminal, reached)
}

/// The result of a call that takes input, if the log has any for it.
pub fn serve_again(e: &mut Engine, call: &Call) -> Option<i64> {
    let takes = matches!(call.nr, nr::READ | nr::READV | nr::RECVFROM | nr::RECVMSG | nr::SPLICE | TEE);
    let accepts = matches!(call.nr, nr::ACCEPT | nr::ACCEPT4);
    if e.inputs.is_empty() && !replies::are_owed() || !takes && !accepts {
        return None;
    }
    let a = call.args;
    let source = e.fds.source(call.fd())?;
    let mut reached = replies::reached(e, source);
    if reached.is_some() && !e.inputs.is_there(0, source, reached) {
        if never_waits(call) && replies::refuse(e) {
            return Some(err::EAGAIN);
        }
        // Whoever waits here waits for nothing else.
        reached = None;
    }
    if accepts {
        return None;
    }
    let (i, first) = e.inputs.first(source)?;
    let flags = match call.nr {
        nr::RECVFROM => a[3],
        nr::RECVMSG => a[2],
        nr::READ | nr::READV => 0,
        // splice and tee: the program falls back on reading, as for a source that cannot do it.
        _ => return Some(err::EINVAL),
    };
    if flags & MSG_ERRQUEUE != 0 {
        return None;
    }
    let stays = flags & MSG_PEEK != 0;
    if first <= 0 {
        if !stays {
            taken(e, i, 0);
        }
        return Some(first);
    }
    let is_terminal = e.fds.kind(call.fd()) == kind::TERMINAL;
    let n = give(call, gather(e, source, is_terminal, reached), flags & MSG_TRUNC != 0)?;
    if n > 0 && !stays {
        take_away(e, source, n as u64);
    }
    Some(n)
}

/// Is a read that finds nothing over at once?
fn never_waits(call: &Call) -> bool {
    let flags = match call.nr {
        nr::RECVFROM => call.args[3],
        nr::RECVMSG => call.args[2],
        nr::SPLICE | TEE => return false,
        _ => 0,
    };
    flags & MSG_DONTWAIT != 0 || is_nonblocking(call.fd())
}

/// All that is left of a source before its end or error, as far as it is there; of a terminal what one read gave.
fn gather(e: &mut Engine, source: u64, one: bool, reached: Option<u64>) -> &'static [u8] {
    let (mut len, room) = (0, scratch::maps_text());
    for i in 0..e.inputs.count() {
        if !e.inputs.is_there(i, source, reached) {
            break;
        }
        if !e.inputs.is_of(i, source) {
            continue;
        }
        let bytes = bytes_of(e, i);
        room[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
        if one || bytes.is_empty() {
            break;
        }
    }
    &room[..len]
}

/// The program has taken the first `n` bytes of a source.
fn take_away(e: &mut Engine, source: u64, mut n: u64) {
    while let Some((i, left @ 1..)) = e.inputs.first(source).filter(|_| n > 0) {
        let part = n.min(left as u64);
        taken(e, i, part as u32);
        n -= part;
    }
}

/// Gives the program as many bytes as it has room for.
fn give(call: &Call, bytes: &[u8], discards: bool) -> Option<i64> {
    let a = call.args;
    let len = |room: u64| room.min(bytes.len() as u64).min(DATA_LEN);
    // SAFETY: the bounce buffer is the engine's own, and long enough.
    let bounce = |n: u64| unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), DATA as *mut u8, n as usize) };
    let (n, fits) = match call.nr {
        nr::READ | nr::RECVFROM => {
            let n = len(a[2]);
            let nobody_asks = call.nr == nr::READ || a[4] == 0 || a[5] == 0 || user::write(a[5], &0u32);
            (n, nobody_asks && (discards || user::write_bytes(a[1], &bytes[..n as usize])))
        }
        nr::READV => {
            let vectors = Vectors::new(a[1], a[2])?;
            let n = len(vectors.total);
            bounce(n);
            (n, vectors.spread(DATA, n))
        }
        _ => {
            let header = user::read::<Header>(a[1])?;
            let vectors = Vectors::new(header.vectors, header.count)?;
            let n = len(vectors.total);
            bounce(n);
            let told = Header { name_len: 0, control_len: 0, flags: 0, ..header };
            (n, vectors.spread(DATA, n) && user::write(a[1], &told))
        }
    };
    Some(if fits { n as i64 } else { err::EFAULT })
}
