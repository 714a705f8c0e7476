//! Keeps what the program reads and sends for a while, in the session, if it is to meet that again when it goes back to an older generation: see
//! [`outlast_image::history`]. All but [`is_kept`] is for whoever has the engine's lock.

use crate::dispatch::Call;
use crate::inputs::Head;
use crate::replies::each_piece;
use crate::retrace;
use crate::state::Engine;
use crate::sys::nr;
use core::sync::atomic::Ordering::*;
use outlast_image::history::{kind, record, skipped, History, Record, HEAD, LEN, MOST};
use outlast_image::inject::option;
use outlast_image::layout::{session, PAGE, SESSION_BASE};

const AT: u64 = SESSION_BASE + session::HISTORY;

pub fn shared() -> &'static History {
    // SAFETY: the session is mapped as long as the engine runs, and zeroed or written by an engine: atomics only.
    unsafe { &*(AT as *const History) }
}

/// All of its records.
pub fn ring() -> &'static [u8] {
    // SAFETY: mapped as long as the engine runs; written by who has the engine's lock, which the caller has.
    unsafe { core::slice::from_raw_parts((AT + PAGE) as *const u8, LEN as usize) }
}

/// Only then is there room for it.
pub fn is_kept(e: &Engine) -> bool {
    e.args.options & option::HISTORY != 0
}

/// The program takes or sends what cannot be kept: what it did before it could not do again.
pub fn lose(e: &Engine) {
    if !is_kept(e) {
        return;
    }
    let history = shared();
    if history.end.load(Relaxed) == 0 {
        // Who finds the first record at the beginning takes it for the first of all.
        // SAFETY: within the ring, where nothing is yet.
        unsafe { ((AT + PAGE) as *mut [u32; 2]).write([kind::NOTHING, 0]) };
        history.end.store(8, Release);
    }
    history.begin.store(history.end.load(Relaxed), Release);
}

/// A read took this.
pub fn took(e: &Engine, head: &Head, seq: u64, bytes: &[u8]) {
    let Head { source, fd, result, .. } = *head;
    let record = Record { kind: kind::INPUT, len: bytes.len() as u32, seq, source, fd, result };
    append(e, record, |room| {
        room.copy_from_slice(bytes);
        true
    });
}

/// The call has sent its bytes `from..to`.
pub fn sent(e: &mut Engine, call: &Call, from: u64, to: u64) {
    if !is_kept(e) || to <= from {
        return;
    }
    let Some(source) = e.fds.source(call.fd()) else { return lose(e) };
    if to - from > MOST {
        return lose(e);
    }
    let (len, seq) = ((to - from) as u32, e.store().seq());
    let record = Record { kind: kind::OUTPUT, len, seq, source, fd: call.fd(), result: len as i32 };
    append(e, record, |room| {
        let mut at = 0;
        each_piece(call, from, to, &mut |bytes| {
            if let Some(part) = room.get_mut(at..at + bytes.len()) {
                part.copy_from_slice(bytes);
            }
            at += bytes.len();
        }) && at == room.len()
    });
}

/// What the commit `seq` stands before has sent its bytes from the first number up to the other, which may be an error, and has been noted if
/// a dead predecessor came to that.
pub fn sent_behind(e: &mut Engine, call: &Call, (from, to): (u64, i64), seq: u64) {
    if !is_kept(e) || to <= 0 || shared().noted.swap(seq, Relaxed) == seq {
        return;
    }
    match call.nr {
        nr::WRITE | nr::WRITEV | nr::SENDTO | nr::SENDMSG => sent(e, call, from, to as u64),
        _ => lose(e),
    }
}

/// `fill` writes the bytes, or says that it cannot.
fn append(e: &Engine, record: Record, fill: impl FnOnce(&mut [u8]) -> bool) {
    if !is_kept(e) {
        return;
    }
    let history = shared();
    let mut end = history.end.load(Relaxed);
    let skip = skipped(end, record.room());
    if !make_room(end, end + skip + record.room()) {
        return lose(e);
    }
    let at = |end: u64| (AT + PAGE + end % LEN) as *mut u8;
    // SAFETY: within the ring, eight bytes aligned, and nobody else's: the record begins before its end, and so does what is skipped.
    let room = unsafe {
        if skip != 0 {
            at(end).cast::<[u32; 2]>().write([kind::NOTHING, (skip - 8) as u32]);
            end += skip;
        }
        at(end).cast::<Record>().write(record);
        core::slice::from_raw_parts_mut(at(end).add(HEAD as usize), record.len as usize)
    };
    if fill(room) {
        history.end.store(end + record.room(), Release);
    } else {
        lose(e);
    }
}

/// Gives up the oldest records until one can end there. False: they are still needed.
fn make_room(end: u64, until: u64) -> bool {
    let history = shared();
    if retrace::needs().is_some_and(|from| until > from + LEN) {
        return false;
    }
    let mut begin = history.begin.load(Relaxed);
    while until > begin + LEN {
        begin = record_end(begin, end);
    }
    history.begin.store(begin, Release);
    true
}

/// Where the record at `at` ends; behind all if there is none.
fn record_end(at: u64, end: u64) -> u64 {
    record(ring(), at, end).map_or(end, |record| at + record.room())
}
