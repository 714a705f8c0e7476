//! A program that went back to an older generation meets again what it had read since, and is not to send again what it had sent: as
//! long as it sends the same, which is compared byte by byte with what its history has. From the first difference on
//! everything leaves. What it had read is in its log of inputs ([`crate::inputs`]).
//!
//! How far it is goes into each commit, so that whoever is restored from one knows it; the history itself lies in the session.

use crate::calls::{joined, output};
use crate::control::degrade;
use crate::dispatch::Call;
use crate::history::{is_kept, ring, shared};
use crate::replies::each_piece;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::nr;
use crate::thread::Thread;
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::descriptor_kind as kind_of;
use outlast_image::history::{bytes, kind, record, Record, LEN};

/// To so many open files it may have sent something.
const SOURCES: usize = 32;

/// 1: what is sent is compared.
static ON: AtomicU32 = AtomicU32::new(0);
/// Position from which on the history is needed, plus one; 0: it is not.
static NEEDS: AtomicU64 = AtomicU64::new(0);

/// How far it is with one open file.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Cursor {
    source: u64,
    /// The record to be looked at next.
    at: u64,
    /// Bytes of it that were made again.
    done: u64,
}

/// How far it is.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Retrace {
    /// Which time; 0: it never went back so.
    number: u64,
    /// Bytes that were sent and not made again yet; 0: it is over.
    left: u64,
    count: u64,
    /// Inputs that it is given once more and that no commit has yet.
    given: u64,
    /// Not 0: not as in the store.
    dirty: u64,
    cursors: [Cursor; SOURCES],
}

impl Retrace {
    pub const fn new() -> Retrace {
        Retrace {
            number: 0,
            left: 0,
            count: 0,
            given: 0,
            dirty: 0,
            cursors: [Cursor { source: 0, at: 0, done: 0 }; SOURCES],
        }
    }

    pub fn given(&self) -> usize {
        self.given as usize
    }

    fn cursor(&mut self, source: u64) -> Option<&mut Cursor> {
        let known = self.cursors[..self.count as usize].iter().position(|cursor| cursor.source == source);
        let at = match known {
            Some(at) => at,
            None if self.count as usize == SOURCES => return None,
            None => {
                self.cursors[self.count as usize] = Cursor { source, at: shared().from.load(Relaxed), done: 0 };
                self.count += 1;
                self.count as usize - 1
            }
        };
        self.cursors.get_mut(at)
    }
}

/// Is what is sent compared?
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Relaxed) != 0
}

/// From which position on the history must stay as it is.
pub fn needs() -> Option<u64> {
    NEEDS.load(Relaxed).checked_sub(1)
}

/// The records that the program meets again, in order.
fn each(f: &mut dyn FnMut(u64, &Record)) {
    let (mut at, until) = (shared().from.load(Relaxed), shared().until.load(Relaxed));
    while let Some(record) = record(ring(), at, until) {
        f(at, &record);
        at += record.room();
    }
}

/// Of a restored program: whether it meets records again, and how far it is. Calls `input` for each input that is to be given to it
/// once more and that no commit has yet.
pub fn load(e: &mut Engine, input: &mut dyn FnMut(&mut Engine, u64, &Record)) {
    e.retrace = Retrace::new();
    ON.store(0, Relaxed);
    NEEDS.store(0, Relaxed);
    if !is_kept(e) {
        return;
    }
    let (number, from) = (shared().number.load(Relaxed), shared().from.load(Relaxed));
    let is_sound = shared().until.load(Relaxed).checked_sub(from).is_some_and(|len| len <= LEN);
    if number == 0 || !is_sound {
        return;
    }
    let buf = scratch::object_buffer();
    let n = e.store().object(object::RETRACE, 0, buf).unwrap_or(0);
    let saved: Option<Retrace> = buf.get(..n).and_then(|bytes| bytemuck::try_pod_read_unaligned(bytes).ok());
    match saved.filter(|saved| saved.number == number) {
        Some(saved) => e.retrace = Retrace { count: saved.count.min(SOURCES as u64), ..saved },
        None => {
            let (mut left, mut given) = (0, 0);
            each(&mut |at, record| match record.kind {
                kind::OUTPUT => left += u64::from(record.len),
                kind::INPUT => {
                    given += 1;
                    input(e, at, record);
                }
                _ => {}
            });
            e.retrace = Retrace { number, left, given, dirty: 1, ..Retrace::new() };
            NEEDS.store(from + 1, Relaxed);
        }
    }
    if e.retrace.left != 0 {
        ON.store(1, Relaxed);
        NEEDS.store(from + 1, Relaxed);
    }
}

/// Puts into the commit that is being made how far it is. Inputs are in there as well.
pub fn save(e: &mut Engine) {
    if e.retrace.dirty == 0 {
        return;
    }
    (e.retrace.dirty, e.retrace.given) = (0, 0);
    if e.retrace.left == 0 {
        NEEDS.store(0, Relaxed);
    }
    let retrace = e.retrace;
    e.store().put(object::RETRACE, 0, bytemuck::bytes_of(&retrace));
}

/// An output: its result, if it was sent before, or if what is new of it is sent. To be called while [`is_on`].
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<i64> {
    match made(e, call) {
        0 => None,
        same if joined::total(call) == Some(same) => Some(same as i64),
        // All that had been sent there ends within this call.
        same => Some(output::send_behind(e, t, call, same)),
    }
}

/// How many of the first bytes of an output were sent before: none of one that differs.
pub fn made(e: &mut Engine, call: &Call) -> u64 {
    let is_plain = matches!(call.nr, nr::WRITE | nr::WRITEV | nr::SENDTO | nr::SENDMSG);
    let Some(source) = e.fds.source(call.fd()) else { return 0 };
    let (Some(total), Some(cursor)) = (joined::total(call).filter(|_| is_plain), e.retrace.cursor(source)) else {
        differs(e);
        return 0;
    };
    let mut at = *cursor;
    let (mut same, mut is_other) = (0, false);
    let is_read = each_piece(call, 0, total, &mut |mut made| {
        while !made.is_empty() && !is_other {
            let Some(sent) = next(&mut at) else { return };
            let n = sent.len().min(made.len());
            is_other = sent[..n] != made[..n];
            if !is_other {
                at.done += n as u64;
                same += n as u64;
                made = &made[n..];
            }
        }
    });
    if is_other {
        differs(e);
        return 0;
    }
    if !is_read || same == 0 {
        return 0;
    }
    // Of a message there is no rest that could be sent alone.
    if same < total && e.fds.kind(call.fd()) == kind_of::SOCKET {
        differs(e);
        return 0;
    }
    let Some(cursor) = e.retrace.cursor(source) else { return 0 };
    *cursor = at;
    e.retrace.dirty = 1;
    e.retrace.left = e.retrace.left.saturating_sub(same);
    if e.retrace.left == 0 {
        ON.store(0, Relaxed);
    }
    same
}

/// What was sent next to where the cursor stands, of one record.
fn next(cursor: &mut Cursor) -> Option<&'static [u8]> {
    let until = shared().until.load(Relaxed);
    loop {
        let record = record(ring(), cursor.at, until)?;
        let is_it = record.kind == kind::OUTPUT && record.source == cursor.source;
        match bytes(ring(), cursor.at, &record)?.get(cursor.done as usize..) {
            Some(rest) if is_it && !rest.is_empty() => return Some(rest),
            _ => *cursor = Cursor { at: cursor.at + record.room(), done: 0, ..*cursor },
        }
    }
}

/// From here on it is another one.
fn differs(e: &mut Engine) {
    degrade(Degradation::OutputDiffers);
    (e.retrace.left, e.retrace.dirty) = (0, 1);
    ON.store(0, Relaxed);
}
