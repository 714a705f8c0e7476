//! Calls that wait, where there are several threads: made without the engine's lock, so that others can go on and commit.

use crate::control::{control, phase};
use crate::dispatch::{wait_for, Call};
use crate::pinned;
use crate::shared_memory;
use crate::state::engine;
use crate::sys::{err, nr};
use crate::thread::{standing, Thread};
use crate::tracker::Track;
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use outlast_calls::{look, written, Told};
use outlast_image::event::phase as at;

/// Futex operations that write to the program's memory: WAKE_OP, and those with priority inheritance.
const FUTEX_CMD: u64 = 0x7f;
const FUTEX_WRITING: [u64; 7] = [5, 6, 7, 8, 11, 12, 13];

/// Issues the call. EINTR if a signal, a request or a knock came before or during it.
pub fn issue(t: &mut Thread, call: &Call) -> i64 {
    let had_lock = t.has_lock;
    let seq = control().last_seq.load(Relaxed);
    if had_lock {
        phase(at::BLOCKED);
        pinned::note(call);
        world::unlock(t);
    }
    let r = shared_memory::around(call, || wait_for(call));
    let writes = r != err::EINTR && may_write(call);
    if had_lock || writes {
        world::lock(t);
        if writes && control().last_seq.load(Relaxed) != seq {
            count_as_written(call);
        }
        if had_lock {
            phase(at::GATE);
        } else {
            world::unlock(t);
        }
    }
    r
}

/// May the kernel write to the program's memory?
pub fn may_write(call: &Call) -> bool {
    match call.nr {
        nr::FUTEX => FUTEX_WRITING.contains(&(call.args[1] & FUTEX_CMD)),
        _ => look(call.nr, &call.args).is_none_or(|row| !row.outs().is_empty()),
    }
}

/// May the kernel write to the page at any moment, for a thread that stands still? The world is stopped.
pub fn is_written_to(page: u64) -> bool {
    world::find(|t| {
        let mut found = t.rseq[0] & !4095 == page;
        let call = Call::at(t);
        if t.standing.load(Acquire) == standing::IN_CALL && may_write(&call) {
            let told = look(call.nr, &call.args).map_or(Told::Partly, |row| {
                written(row, &call.args, &user::Program, |at, len| {
                    found |= at < page + 4096 && page < at.saturating_add(len)
                })
            });
            found |= told == Told::Partly;
        }
        found
    })
    .is_some()
}

/// A commit was made during the call: what the kernel wrote between a page's being saved and its being armed would be missed.
fn count_as_written(call: &Call) {
    // SAFETY: this thread has the lock.
    let tracker = unsafe { &mut engine().tracker };
    let told = look(call.nr, &call.args).map_or(Told::Partly, |row| {
        written(row, &call.args, &user::Program, |at, len| {
            tracker.disarm(at & !4095, at.saturating_add(len).saturating_add(4095) & !4095)
        })
    });
    if told == Told::Partly {
        for at in call.args {
            tracker.disarm(at & !4095, (at & !4095).saturating_add(4096));
        }
    }
}
