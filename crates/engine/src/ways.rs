//! Ways in which the engine protects the program that change while that runs: what modules wish of it.
//!
//! The supervisor writes the wish into the session, whose arguments whoever is restored reads as well, counts it, and knocks. Interval,
//! attempts and gathering are taken at once. Whether a commit stands before outputs is the commit's own: what a rollback has to undo
//! depends on it, so that it changes together with one. Who goes back to the commit before goes on in the old way, and is asked again.

use crate::commit::commit_at_gate;
use crate::control::control;
use crate::periodic;
use crate::state::Engine;
use crate::sys::futex_wake;
use crate::thread::Thread;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::inject::option;
use outlast_image::kernel::before_outputs;

/// What is to stand before outputs.
fn wanted(e: &Engine) -> u32 {
    match e.args.options & option::NO_VISIBLE {
        0 => before_outputs::COMMIT,
        _ => before_outputs::NOTHING,
    }
}

/// The program begins, or is back, and a commit may not say what stands before outputs.
pub fn begin(e: &mut Engine) {
    if e.kernel.before_outputs == before_outputs::UNKNOWN {
        (e.kernel.before_outputs, e.kernel_dirty) = (wanted(e), true);
    }
}

/// Is there a wish that was not seen to?
pub fn is_due(e: &Engine) -> bool {
    let c = control();
    c.ways_wanted.load(Acquire) != c.ways_taken.load(Acquire) || e.kernel.before_outputs != wanted(e)
}

/// Sees to it, or has it seen to by the threads that are in the way. The caller is at the gate, with the lock.
pub fn change(e: &mut Engine, t: &Thread) {
    let c = control();
    // First the number: what is written after it is counted after it.
    let number = c.ways_wanted.load(Acquire);
    e.load_ways();
    periodic::restart(e);
    if e.kernel.before_outputs != wanted(e) {
        (e.kernel.before_outputs, e.kernel_dirty, e.ways_are_open) = (wanted(e), true, true);
    }
    if e.ways_are_open {
        // A commit would have them made again. They are, with one before them, or have ended by then; the last one comes back here.
        let is_in_the_way = |other: &Thread| other.is_unseen && other.place != t.place;
        if wanted(e) == before_outputs::COMMIT && world::find(is_in_the_way).is_some() {
            world::knock_at_others(t);
            return;
        }
        commit_at_gate(e);
        e.ways_are_open = false;
    }
    c.ways_taken.store(number, Release);
    futex_wake(&c.ways_taken);
}
