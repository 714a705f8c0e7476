//! Operations done exactly once: committed first, then made on the ring, or by a noted call where there is no ring, with
//! the commit's number, and found again by whoever is restored.

use crate::calls::queues;
use crate::control::phase;
use crate::mutant::without;
use crate::noted;
use crate::ring::{self, progress, save_progress, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use outlast_calls::Class;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::descriptor::descriptor_kind;
use outlast_image::event::phase as at;
use outlast_image::mutant::Mutant;
use outlast_image::pending::operation_id;

pub const POLLIN: u32 = 1;
pub const POLLOUT: u32 = 4;

/// What the commit before an operation calls it.
pub fn kind(e: &Engine) -> u32 {
    if e.ring.available() {
        pending_kind::RING
    } else {
        pending_kind::NOTED
    }
}

/// Will what a commit stands before be known to be done, and with which result, even after reads that were noted since? What an
/// input brought is not: they bring theirs to the same place.
pub fn settles(pending: &PendingCall) -> bool {
    match pending.kind {
        pending_kind::NONE | pending_kind::GATHERED => true,
        pending_kind::RING | pending_kind::NOTED => {
            let nr = pending.nr as u64;
            outlast_calls::row(nr).is_some_and(|row| row.class != Class::Input) && !queues::takes(nr)
        }
        _ => false,
    }
}

/// The parts of one committed operation.
pub struct Operation {
    seq: u64,
    part: u16,
    /// Bytes that all parts so far transferred.
    pub done: u64,
    /// Result of the next part, if the dead predecessor got that far.
    found: Option<i64>,
    resumed: bool,
}

impl Operation {
    /// The operation that commit `seq` stands before.
    pub fn new(seq: u64) -> Operation {
        Operation { seq, part: 0, done: 0, found: None, resumed: false }
    }

    /// What is left of an operation after its first `done` bytes.
    pub fn rest(seq: u64, done: u64) -> Operation {
        Operation { done, ..Operation::new(seq) }
    }

    /// A noted read, which has an identifier of its own.
    pub fn input(id: u64) -> Operation {
        Operation { part: id as u16, ..Operation::new(id >> 16) }
    }

    /// The result of the noted read `id`, if a dead predecessor got that far. It is for the caller to keep: a place apart from the
    /// ring is there for the committed operation only. To be called when [`Operation::resumed`] may be.
    pub fn found_input(e: &mut Engine, id: u64) -> Option<i64> {
        let on_ring = if without(Mutant::CompletionLookup) { None } else { ring::completed(id) };
        on_ring.or_else(|| noted_result(e, id))
    }

    /// Nothing of it is done but the first `first` bytes, whatever a predecessor has done, also for whoever comes after this process.
    pub fn forget(&mut self, first: u64) {
        ring::forget(self.seq);
        noted::forget();
        *self = Operation::rest(self.seq, first);
    }

    /// The commit that it stands behind.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The same after a restore: goes on where the predecessor died. To be called before the new ring is set up and
    /// before this process opens anything.
    pub fn resumed(e: &mut Engine, seq: u64, first: u64) -> Operation {
        let (part, done) = progress(seq);
        let done = done.max(first);
        let id = operation_id(seq, part);
        let on_ring = if without(Mutant::CompletionLookup) { None } else { ring::predecessor_result(id) };
        let found = on_ring.or_else(|| noted_result(e, id));
        Operation { seq, part, done, found, resumed: true }
    }

    /// The next part's result, if the predecessor left it: taken away.
    pub fn take_found(&mut self) -> Option<i64> {
        self.found.take()
    }

    /// That result, left where it is.
    pub fn found(&self) -> Option<i64> {
        self.found
    }

    /// Identifier of the next part.
    pub fn id(&self) -> u64 {
        operation_id(self.seq, self.part)
    }

    /// Did the predecessor leave the result of the next part?
    pub fn was_found(&self) -> bool {
        self.found.is_some()
    }

    /// Is any part of it done and noted?
    pub fn has_parts(&self) -> bool {
        self.part > 0
    }

    /// Did somebody who is dead begin it?
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The next part's result: the predecessor's, or that of making `entry` now.
    #[inline]
    pub fn run(&mut self, e: &mut Engine, mut entry: Entry) -> i64 {
        self.perform(e, |e, id| {
            entry.user_data = id;
            if e.ring.available() {
                e.ring.run(&entry)
            } else {
                noted::run(e, id, &entry)
            }
        })
    }

    /// The next part's result: the predecessor's, or that of `call`, which gets the part's identifier.
    #[inline]
    pub fn perform(&mut self, e: &mut Engine, call: impl FnOnce(&mut Engine, u64) -> i64) -> i64 {
        let id = operation_id(self.seq, self.part);
        if let Some(r) = self.found.take() {
            e.performed = (id, r);
            return r;
        }
        phase(at::OPERATION);
        let r = call(e, id);
        e.performed = (id, r);
        phase(at::COMPLETED);
        r
    }

    /// Notes that the part transferred `n` bytes and goes on to the next.
    pub fn advance(&mut self, n: u64) {
        self.done += n;
        save_progress(operation_id(self.seq, self.part), self.done);
        self.part = self.part.wrapping_add(1);
    }
}

/// A ring that a predecessor could not have again left the rest to noted calls.
fn noted_result(e: &mut Engine, id: u64) -> Option<i64> {
    if without(Mutant::NoteLookup) {
        None
    } else {
        noted::predecessor_result(e, id)
    }
}

/// Waits in the program's context until `fd` is ready: signals interrupt the wait, not the operation.
/// 0 or positive: ready; EINTR: a signal came first.
pub fn wait_ready(t: &mut Thread, fd: i32, events: u32, timeout_ms: i64) -> i64 {
    t.poll = fd as u32 as u64 | (events as u64) << 32;
    let args = [(&raw mut t.poll) as u64, 1, timeout_ms as u64, 0, 0, 0];
    crate::dispatch::interruptible(t, &crate::dispatch::Call { nr: nr::POLL, args })
}

/// Is `fd` ready now?
#[inline]
pub fn is_ready(fd: i32, events: u32) -> bool {
    let mut p = fd as u32 as u64 | (events as u64) << 32;
    // SAFETY: poll with time-out 0 reads and writes the eight bytes of `p`.
    unsafe { syscall!(nr::POLL, &raw mut p, 1, 0) != 0 }
}

/// Does the ring understand "do not wait" for this kind of descriptor? For others (terminals, event counters, watches) it
/// answers EAGAIN for ever, or as if it had been asked nothing.
pub fn knows_nowait(kind: u32) -> bool {
    matches!(kind, descriptor_kind::PIPE | descriptor_kind::SOCKET)
}

/// Has the program (or somebody who shares the descriptor) set O_NONBLOCK?
pub fn is_nonblocking(fd: i32) -> bool {
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, 3) };
    !err::is(flags) && flags & 0o4000 != 0
}
