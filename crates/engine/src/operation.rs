//! Ring operations done exactly once: committed first, then submitted with the commit's number, and found again in the
//! completion queue by whoever is restored.

use crate::control::phase;
use crate::ring::{predecessor_result, progress, save_progress, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use outlast_image::event::phase as at;
use outlast_image::inject::mutant;
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::pending::operation_id;

pub const POLLIN: u32 = 1;
pub const POLLOUT: u32 = 4;

/// The parts of one committed operation.
pub struct Operation {
    seq: u64,
    part: u16,
    /// Bytes that all parts so far transferred.
    pub done: u64,
    /// Result of the next part, if the dead predecessor got that far.
    found: Option<i64>,
}

impl Operation {
    /// The operation that commit `seq` stands before.
    pub fn new(seq: u64) -> Operation {
        Operation { seq, part: 0, done: 0, found: None }
    }

    /// The same after a restore: goes on where the predecessor died. To be called before the new ring is set up.
    pub fn resumed(e: &Engine, seq: u64) -> Operation {
        let (part, done) = progress(seq);
        let lookup = e.args.mutants & mutant::SKIP_COMPLETION_LOOKUP == 0;
        let found = if lookup { predecessor_result(operation_id(seq, part)) } else { None };
        Operation { seq, part, done, found }
    }

    /// Did the predecessor leave the result of the next part?
    pub fn was_found(&self) -> bool {
        self.found.is_some()
    }

    /// Is any part of it done and noted?
    pub fn has_parts(&self) -> bool {
        self.part > 0
    }

    /// The next part's result: the predecessor's, or that of submitting `entry` now.
    #[inline]
    pub fn run(&mut self, e: &mut Engine, mut entry: Entry) -> i64 {
        if let Some(r) = self.found.take() {
            return r;
        }
        entry.user_data = operation_id(self.seq, self.part);
        phase(at::OPERATION);
        let r = e.ring.run(&entry);
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

/// Waits in the program's context until `fd` is ready: signals interrupt the wait, not the operation.
/// 0 or positive: ready; EINTR: a signal came first.
pub fn wait_ready(t: &mut Thread, fd: i32, events: u32, timeout_ms: i64) -> i64 {
    let at = SESSION_BASE + session::PENDING + 512;
    // SAFETY: eight bytes of the session, used by nobody else.
    unsafe { (at as *mut u64).write(fd as u32 as u64 | (events as u64) << 32) };
    let call = crate::dispatch::Call { nr: nr::POLL, args: [at, 1, timeout_ms as u64, 0, 0, 0] };
    crate::dispatch::interruptible(t, &call)
}

/// Is `fd` ready now?
#[inline]
pub fn is_ready(fd: i32, events: u32) -> bool {
    let mut p = fd as u32 as u64 | (events as u64) << 32;
    // SAFETY: poll with time-out 0 reads and writes the eight bytes of `p`.
    unsafe { syscall!(nr::POLL, &raw mut p, 1, 0) != 0 }
}

/// Has the program (or somebody who shares the descriptor) set O_NONBLOCK?
pub fn is_nonblocking(fd: i32) -> bool {
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, 3) };
    !err::is(flags) && flags & 0o4000 != 0
}
