//! Rings of the program's own (io_uring), which the kernel does not have: its requests in flight could not be brought back, and write to
//! memory behind the page tables. The engine serves them. A ring is ordinary memory, and an eventfd for its descriptor, which
//! is readable when there are completions. Its entries are made as the system calls that they stand for.
//!
//! The calls are made by the program: a thread that enters the ring is sent to a few instructions in the ring's notes, where
//! it makes one call and comes back to the engine with its result ([`stepping`]). Between the two nothing sets it apart from a program that makes
//! these calls by itself; so what holds for these calls (commits before outputs, exactly once, noted inputs, signals,
//! threads) holds for entries. A thread's own registers wait in a frame in the notes.
//!
//! What would block stays as a request until poll(2) says otherwise ([`pending`]): that is looked at whenever a thread enters the ring, or
//! waits for descriptors in another call ([`waiting`]).

mod bell;
mod code;
mod completing;
mod files;
mod frame;
mod layout;
mod mapping;
mod op;
mod operations;
mod pending;
mod queues;
mod register;
mod setup;
mod starting;
mod stepping;
mod submitting;
mod waiting;

pub use bell::{reopen, restore};
pub use files::before_close;
pub use mapping::{mapping, note_mapping};
pub use setup::closed;
pub use waiting::wait;

use crate::dispatch::{Call, Outcome};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use layout::Notes;

/// Is it a call on rings?
pub fn is_one(nr: u64) -> bool {
    matches!(nr, nr::IO_URING_SETUP | nr::IO_URING_ENTER | nr::IO_URING_REGISTER)
}

/// Has it ever had one? The first place is in use from then on.
fn were_made(e: &Engine) -> bool {
    e.kernel.rings[0].notes != 0
}

/// Does the program have any?
pub fn exist(e: &Engine) -> bool {
    were_made(e) && e.kernel.rings.iter().any(|ring| ring.notes != 0 && ring.fd >= 0)
}

/// Does it wait for descriptors, where requests of a ring may wait, too?
pub fn concern(e: &Engine, call: &Call) -> bool {
    exist(e) && waiting::is_one(call)
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    use Outcome::Return;
    if call.nr == nr::IO_URING_SETUP {
        return Return(setup::set_up(e, t, call));
    }
    if let Some((notes, at)) = stepping::returned(e, call) {
        return stepping::go_on(e, t, notes, at, call.args[3] as i64);
    }
    match find(e, call.fd()) {
        None if e.fds.is_open(call.fd()) => Return(err::EOPNOTSUPP),
        None => Return(err::EBADF),
        Some(notes) if call.nr == nr::IO_URING_ENTER => stepping::enter(e, t, notes, call),
        Some(notes) => register::serve(e, t, notes, call),
    }
}

/// The ring that the program knows by this descriptor.
fn find(e: &Engine, fd: i32) -> Option<Notes> {
    let ring = e.kernel.rings.iter().find(|ring| ring.notes != 0 && ring.fd == fd && fd >= 0)?;
    Some(Notes { at: ring.notes })
}
