//! Reads without a commit: the operation, and the note of what it took.

use super::log::{Head, MOST};
use crate::calls::message::{Vectors, DATA};
use crate::calls::{input, unseen};
use crate::dispatch::Call;
use crate::history;
use crate::operation::Operation;
use crate::replies;
use crate::ring;
use crate::scratch;
use crate::state::{journal, Engine};
use crate::sys::{err, nr};
use crate::thread::Thread;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{fence, Ordering::SeqCst};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::kernel::one_shot;
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::pending::operation_id;
use outlast_store::ENTRIES_MAX;

/// Longer reads are preceded by a commit: it costs little beside the bytes.
const LONGEST: u64 = 60 << 10;
/// As many bytes are noted between two commits.
const MOST_BYTES: u64 = 1 << 20;
/// Entries of the journal that others may need.
const RESERVE: u32 = 1 << 10;
/// Parts from this one on are those of noted reads, each has its own.
const FIRST_PART: u16 = 0x8000;
/// As many there are.
const PARTS: u16 = 0x8000;

/// Flags of recv that change nothing for a stream: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_CMSG_CLOEXEC.
const HARMLESS: u64 = 0x40 | 0x4000 | 0x4000_0000;

/// The part in an operation's identifier.
const PART: u64 = 0xffff;

/// What was noted since a commit.
pub struct Noted {
    seq: u64,
    count: u16,
    bytes: u64,
    /// Reads that were made, whatever they took.
    made: u16,
}

impl Noted {
    pub const fn new() -> Noted {
        Noted { seq: 0, count: 0, bytes: 0, made: 0 }
    }
}

/// The read that is under way, for a successor: one record of the session.
#[repr(C)]
#[derive(Clone, Copy)]
struct UnderWay {
    id: u64,
    source: u64,
    fd: i32,
    kind: u32,
    after: u64,
}

const UNDER_WAY: *mut UnderWay = (SESSION_BASE + session::PENDING + 3584) as *mut UnderWay;

/// The source of a read that can be noted; `None` if it cannot be.
#[inline]
pub fn source_of(e: &mut Engine, call: &Call) -> Option<u64> {
    let a = &call.args;
    let len = match call.nr {
        nr::READ => a[2],
        nr::READV => Vectors::new(a[1], a[2])?.total,
        // Nobody asks where the bytes come from.
        nr::RECVFROM if a[3] & !HARMLESS == 0 && a[4] == 0 => a[2],
        _ => return None,
    };
    // Without commits before visible events a read is cut short instead.
    let fits = len <= LONGEST || call.nr != nr::READV && unseen::chosen(e);
    // An event that comes once only would not come again if it is not kept: soon after it there is a commit.
    if len > 0 && fits && e.kernel.one_shot != one_shot::TOO_MANY {
        e.fds.source(call.fd())
    } else {
        None
    }
}

/// Can one more read be noted before the next commit?
#[inline]
pub fn has_room(e: &mut Engine) -> bool {
    let (kept, store) = (e.inputs.objects() + e.retrace.given(), e.store());
    let (seq, entries) = (store.seq(), store.journal_count());
    if e.noted.seq != seq {
        e.noted = Noted { seq, ..Noted::new() };
    }
    let most = if replies::are_free(e) { replies::READS } else { u16::MAX };
    e.is_settled
        && e.noted.count < most
        && kept + (e.noted.count as usize) < MOST
        && e.noted.bytes < MOST_BYTES
        && e.noted.made < PARTS
        && entries < ENTRIES_MAX - RESERVE
}

/// Makes the call. To be called only if it can be noted; EAGAIN if there is nothing to be read.
pub fn take(e: &mut Engine, t: &mut Thread, call: &Call, source: u64) -> i64 {
    let fd = call.fd();
    let id = operation_id(e.noted.seq, FIRST_PART + e.noted.made);
    e.noted.made += 1;
    let kind = e.fds.kind(fd);
    let after = e.replies.replied(source, e.noted.seq);
    // The ring, or the note, tells of the last operation only.
    let (performed, result) = e.performed;
    if performed >> 16 == e.noted.seq && (performed as u16) < FIRST_PART {
        ring::keep_result(performed, result);
    }
    // SAFETY: a record of the session that nobody else uses; its id is taken away first and given last.
    unsafe {
        write_volatile(&raw mut (*UNDER_WAY).id, 0);
        fence(SeqCst);
        write_volatile(&raw mut (*UNDER_WAY).source, source);
        write_volatile(&raw mut (*UNDER_WAY).fd, fd);
        write_volatile(&raw mut (*UNDER_WAY).kind, kind);
        write_volatile(&raw mut (*UNDER_WAY).after, after);
        fence(SeqCst);
        write_volatile(&raw mut (*UNDER_WAY).id, id);
    }
    let mut operation = Operation::input(id);
    let mut call = *call;
    if call.nr != nr::READV {
        call.args[2] = call.args[2].min(LONGEST);
    }
    let r = input::finish(e, t, &call, &mut operation);
    note(e, &UnderWay { id, source, fd, kind, after }, r);
    r
}

/// Is there anything in the result that the source will not tell again?
fn is_taken(kind: u32, result: i64) -> bool {
    match result {
        1.. => true,
        0 => kind == kind::TERMINAL,
        err::EINTR | err::EAGAIN | err::ECANCELED | err::EFAULT | err::EINVAL | err::EOPNOTSUPP => false,
        _ => kind == kind::SOCKET,
    }
}

/// Notes what a read took, whose bytes lie in the bounce buffer.
fn note(e: &mut Engine, read: &UnderWay, result: i64) {
    if !is_taken(read.kind, result) {
        return;
    }
    const HEAD: usize = size_of::<Head>();
    let len = (result.max(0) as u64).min(LONGEST) as usize;
    let entry = &mut scratch::object_buffer()[..HEAD + len];
    let result = if result > 0 { len as i32 } else { result as i32 };
    let head = Head { source: read.source, fd: read.fd, result, part: read.id & PART, after: read.after };
    entry[..HEAD].copy_from_slice(bytemuck::bytes_of(&head));
    // SAFETY: the bounce buffer is the engine's own, and longer.
    entry[HEAD..].copy_from_slice(unsafe { core::slice::from_raw_parts(DATA as *const u8, len) });
    // There is room: see `has_room`.
    let _ = e.store().journal_append(journal::INPUT, entry);
    history::took(e, &head, e.noted.seq, &entry[HEAD..]);
    e.noted.count += 1;
    e.noted.bytes += len as u64;
}

/// Descriptors are others from now on.
pub fn forget_under_way() {
    // SAFETY: as in `take`.
    unsafe { write_volatile(&raw mut (*UNDER_WAY).id, 0) };
}

/// Notes what a dead predecessor took and could not note. To be called when nothing else of it was touched.
pub fn recover(e: &mut Engine) {
    let (mut noted, mut last_noted) = (Noted { seq: e.store().seq(), ..Noted::new() }, None);
    e.store().journal_for_each(&mut |_, kind, entry| {
        if let (journal::INPUT, Some(head)) = (kind, entry.get(..size_of::<Head>())) {
            noted.count += 1;
            noted.bytes += entry.len() as u64;
            last_noted = Some(bytemuck::pod_read_unaligned::<Head>(head).part);
        }
    });
    // SAFETY: as in `take`.
    let last = unsafe { read_volatile(UNDER_WAY) };
    let is_of_this = last.id >> 16 == noted.seq && last.id & PART >= FIRST_PART.into();
    if is_of_this {
        noted.made = (last.id & PART) as u16 - FIRST_PART + 1;
    }
    e.noted = noted;
    // There was room when it was made.
    if is_of_this && last_noted != Some(last.id & PART) {
        if let Some(result) = Operation::found_input(e, last.id) {
            note(e, &last, result);
        }
    }
}

const _: () = assert!(LONGEST as usize + size_of::<Head>() <= outlast_store::ENTRY_MAX);
