//! Descriptors that hand out records: counters, timers, signals, changes of files. The bytes themselves are the note: the
//! session is filled with a pattern that no record has, and read into.

use super::note::{how, note};
use super::{counter, plain};
use crate::calls::message::{DATA, DATA_LEN};
use crate::dispatch::{issue, Call};
use crate::proc;
use crate::ring::Entry;
use crate::state::Engine;
use crate::sys::nr;
use core::sync::atomic::Ordering::Relaxed;

const NONE: u8 = 0xff;

/// Length of a record at the start of `bytes`, and which word of it is never [`NONE`]; `None`: not such a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Form {
    /// Eight bytes: the counter of an eventfd ends at !0 - 1, the expirations of a timerfd never get there.
    Count = 1,
    /// `struct signalfd_siginfo`: 128 bytes, the signal first.
    Signal = 2,
    /// `struct inotify_event`: 16 bytes and a name; the second word is the mask.
    Change = 3,
}

fn form(fd: i32) -> Option<Form> {
    let mut name = [0u8; 32];
    match proc::link(fd, &mut name) {
        counter::NAME | b"anon_inode:[timerfd]" => Some(Form::Count),
        b"anon_inode:[signalfd]" => Some(Form::Signal),
        b"anon_inode:inotify" => Some(Form::Change),
        _ => None,
    }
}

/// Is it a signalfd?
pub fn gives_signals(fd: i32) -> bool {
    form(fd) == Some(Form::Signal)
}

pub fn read(e: &Engine, id: u64, entry: &Entry) -> i64 {
    let Some(form) = form(entry.fd) else { return plain(e, id, entry) };
    let len = (entry.len as u64).min(DATA_LEN);
    note().begin(how::RECORDS, entry.fd);
    note().words[0].store(form as u64, Relaxed);
    note().start.store(len, Relaxed);
    // SAFETY: the data part of the bounce buffer.
    unsafe { core::ptr::write_bytes(DATA as *mut u8, NONE, len as usize) };
    note().arm(id);
    issue(&Call { nr: nr::READ, args: [entry.fd as u64, DATA, len, 0, 0, 0] })
}

/// Bytes of the records that a dead predecessor read.
pub fn taken() -> Option<i64> {
    let len = note().start.load(Relaxed).min(DATA_LEN) as usize;
    // SAFETY: the data part of the bounce buffer; nobody writes to it now.
    let bytes = unsafe { core::slice::from_raw_parts(DATA as *const u8, len) };
    let form = note().words[0].load(Relaxed);
    let mut at = 0;
    while let Some(record) = record(form, &bytes[at..]) {
        at += record;
        if form == Form::Count as u64 {
            break;
        }
    }
    (at > 0).then_some(at as i64)
}

/// Length of the record at the start of `bytes`, if there is one.
fn record(form: u64, bytes: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let none = u32::from_le_bytes([NONE; 4]);
    let len = match form {
        f if f == Form::Count as u64 => {
            if word(0)? == none && word(4)? == none {
                return None;
            }
            8
        }
        f if f == Form::Signal as u64 => {
            if word(0)? == none {
                return None;
            }
            128
        }
        _ => {
            if word(4)? == none {
                return None;
            }
            16usize.checked_add(word(12)? as usize)?
        }
    };
    (len <= bytes.len()).then_some(len)
}
