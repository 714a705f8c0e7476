//! Calls that wait, where there are several threads: made without the engine's lock, so that others can go on and commit.

use crate::control::{control, phase};
use crate::dispatch::{wait_for, Call};
use crate::futexes;
use crate::kernel_writes;
use crate::mutant::without;
use crate::pinned;
use crate::shared_memory;
use crate::state::engine;
use crate::sys::{err, nr};
use crate::thread::{standing, Thread};
use crate::tracker::{self, Track};
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use outlast_calls::{look, written, Told};
use outlast_image::event::phase as at;
use outlast_image::mutant::Mutant;

/// Issues the call. EINTR if a signal, a request or a knock came before or during it.
pub fn issue(t: &mut Thread, call: &Call) -> i64 {
    let had_lock = t.has_lock;
    let seq = control().last_seq.load(Relaxed);
    // SAFETY: only looks which tracker there is.
    let guarded = had_lock && unsafe { engine() }.tracker.guards_kernel_writes() && kernel_writes::concern(call);
    if guarded && !without(Mutant::KernelWrites) {
        return issue_guarded(t, call);
    }
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

/// The same, where the kernel can write only to what is open: that stays open, though others commit, until the call is over.
fn issue_guarded(t: &mut Thread, call: &Call) -> i64 {
    loop {
        let told = kernel_writes::allow(call);
        phase(at::BLOCKED);
        await_writes(t, Some(call));
        world::unlock(t);
        let r = shared_memory::around(call, || wait_for(call));
        world::lock(t);
        await_writes(t, None);
        phase(at::GATE);
        if !kernel_writes::open_more(call, r, told) {
            return r;
        }
    }
}

/// The kernel writes for this call of the thread, whenever it likes, until it is told otherwise. The caller has the lock.
fn await_writes(t: &mut Thread, call: Option<&Call>) {
    t.awaits = call.is_some() && !without(Mutant::KeptOpen);
    t.awaited = call.copied().unwrap_or(t.awaited);
    tracker::threads_changed();
}

/// May the kernel write to the program's memory?
pub fn may_write(call: &Call) -> bool {
    match call.nr {
        nr::FUTEX => futexes::is_written(call),
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
