//! The note of the one call under way: a few words in the session, some written by the engine before the call, some by
//! the kernel within it, one by the engine after it.
//!
//! A kill stops the engine between two of its instructions, so the order of the stores is the whole protocol: the
//! identifier is taken away first and given last, and the result is stored before anything else happens.

use crate::sys::err;
use core::sync::atomic::{compiler_fence, AtomicI64, AtomicU64, Ordering::*};
use outlast_image::layout::{session, SESSION_BASE};

/// What tells whether the call happened. Values of [`Note::how`].
pub mod how {
    /// Nothing but the result stored after it: the window of one call.
    pub const PLAIN: u64 = 0;
    /// The kernel moves `offset` from `start` when it moves bytes into the session.
    pub const SPLICED: u64 = 1;
    /// Bytes wait in the transfer pipe, or have gone from there into the session as with `SPLICED`.
    pub const COLLECTED: u64 = 2;
    /// What is left of `staged` bytes in the transfer pipe.
    pub const STAGED: u64 = 3;
    /// The kernel writes `msg_len` of the message header.
    pub const MESSAGE: u64 = 4;
    /// The kernel writes `msg_flags` of the message header; the length, `start`, was known before.
    pub const SIZED: u64 = 5;
    /// The kernel writes the first word of `words`: the error it takes away from the socket.
    pub const SOCKET_ERROR: u64 = 6;
    /// The kernel writes records of a known form over bytes that no record has.
    pub const RECORDS: u64 = 7;
    /// The descriptor `start` is open, and was not before. `staged` is not 0 if the call makes a name, too.
    pub const DESCRIPTOR: u64 = 8;
    /// A counter stood at the first of `words` before, and the call adds the second.
    pub const COUNTER: u64 = 9;
    /// The program's own pipe held `start` bytes before.
    pub const COUNTED: u64 = 10;
    /// `words` holds what was to be seen before; a second look tells, or what the kernel has read, if `staged` is not 0.
    pub const WITNESS: u64 = 11;
    /// The kernel writes a message over a mark that none leaves.
    pub const QUEUE: u64 = 12;
    /// As `DESCRIPTOR`, but the table was gone: `words` holds what was to be seen of the name before.
    pub const MADE_NAME: u64 = 13;
    /// The kernel puts an event into the ring of the engine's context.
    pub const COMPLETED: u64 = 14;
}

/// Stands in [`Note::returned`] while the call has not returned.
const RUNNING: i64 = i64::MIN;
/// Words for what each kind of note needs.
pub const WORDS: usize = 8;

/// The note.
#[repr(C)]
pub struct Note {
    /// `operation_id` of the call; 0 while the rest is being filled.
    id: AtomicU64,
    how: AtomicU64,
    /// What the call returned.
    returned: AtomicI64,
    pub fd: AtomicI64,
    pub start: AtomicU64,
    /// Written by the kernel.
    pub offset: AtomicU64,
    pub staged: AtomicU64,
    pub words: [AtomicU64; WORDS],
}

/// The note of this process and of its successors.
#[inline(always)]
pub fn note() -> &'static Note {
    // SAFETY: the session is mapped before the engine's first instruction and never unmapped; all fields are atomics.
    unsafe { &*((SESSION_BASE + session::NOTE) as *const Note) }
}

impl Note {
    /// Begins a note; it counts for nobody until it is armed.
    pub fn begin(&self, how: u64, fd: i32) {
        self.id.store(0, Relaxed);
        compiler_fence(SeqCst);
        self.how.store(how, Relaxed);
        self.returned.store(RUNNING, Relaxed);
        self.fd.store(fd as i64, Relaxed);
    }

    /// From here on the note tells of call `id`: the last thing before it.
    pub fn arm(&self, id: u64) {
        compiler_fence(SeqCst);
        self.id.store(id, Relaxed);
        compiler_fence(SeqCst);
    }

    /// Stores what the call returned: the first thing after it.
    pub fn close(&self, r: i64) -> i64 {
        compiler_fence(SeqCst);
        self.returned.store(r, Relaxed);
        compiler_fence(SeqCst);
        r
    }

    /// Does the note tell of call `id`, in the way `how`?
    pub fn tells(&self, id: u64, how: u64) -> bool {
        self.id.load(Relaxed) == id && self.how.load(Relaxed) == how
    }

    /// Tells of the same call in another way.
    pub fn turn(&self, how: u64) {
        self.how.store(how, Relaxed);
        compiler_fence(SeqCst);
    }

    /// Tells of nothing any more.
    pub fn void(&self) {
        self.id.store(0, Relaxed);
        compiler_fence(SeqCst);
    }

    /// The kind of note left by call `id`, and the result if it returned.
    pub fn of(&self, id: u64) -> Option<(u64, Option<i64>)> {
        if self.id.load(Relaxed) != id {
            return None;
        }
        let returned = self.returned.load(Relaxed);
        Some((self.how.load(Relaxed), (returned != RUNNING).then_some(returned)))
    }

    /// Address of the word that the kernel moves.
    pub fn offset_address(&self) -> u64 {
        self.offset.as_ptr() as u64
    }
}

/// Results after which the call is issued again: nothing happened.
pub fn is_nothing(r: i64) -> bool {
    matches!(r, err::EAGAIN | err::EINTR | err::ECANCELED)
}
