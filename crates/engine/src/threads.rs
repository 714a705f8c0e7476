//! The threads of a commit, besides the one that commits.

use crate::commit::{context_of, save_context};
use crate::mutant::without;
use crate::queued;
use crate::state::{object, Engine};
use crate::thread::{self, standing, Thread};
use crate::world::{self, WORDS};
use core::sync::atomic::Ordering::Acquire;
use outlast_image::context::{pending_kind, PendingCall, ThreadContext};
use outlast_image::layout::{CONTEXT_PAGE, PAGE, THREADS};
use outlast_image::mutant::Mutant;

/// Adds to the commit being built which threads there are.
pub fn list(e: &mut Engine, taken: [u64; WORDS]) {
    let before = e.threads;
    let Some(store) = &mut e.store else { return };
    // Words, not bytes one by one, as arrays are compared in here.
    if taken.iter().zip(&before).fold(0, |differs, (now, then)| differs | (now ^ then)) != 0 {
        store.put(object::THREADS, 0, bytemuck::cast_slice(&taken));
        for place in (0..THREADS as u32).filter(|&place| is_in(&before, place) && !is_in(&taken, place)) {
            let page = CONTEXT_PAGE + place as u64 * PAGE;
            store.drop_range(page, page + PAGE);
        }
        e.threads = taken;
    }
}

/// Adds to the commit being built where all other threads stand. The world is stopped.
pub fn save(e: &mut Engine, own: &mut Thread) {
    list(e, world::taken());
    let Some(store) = &mut e.store else { return };
    world::each(|place| {
        // SAFETY: the thread stands still.
        let t = unsafe { thread::at(place) };
        let is_in_part = t.standing.load(Acquire) == standing::IN_PART && t.pending_call.kind != pending_kind::JOINED;
        if place != own.place && is_in_part {
            e.is_settled = false;
        }
        if place != own.place && t.is_fresh && !without(Mutant::ThreadContexts) {
            let context = standing_context(t);
            save_context(store, t, context);
            t.is_fresh = false;
        }
    });
    // The next commit of another thread finds this one elsewhere.
    own.is_fresh = true;
}

/// What the thread with this place has blocked, or every thread; `None` if it has ended. `own`: place and mask of the thread
/// that commits.
pub fn mask_of(own: (u32, u64), place: u64) -> Option<u64> {
    if place == own.0 as u64 || !world::has_several() {
        return Some(own.1);
    }
    let mut found = None;
    world::each(|other| {
        if place == queued::ANY || place == other as u64 {
            // SAFETY: the world is stopped.
            let mask = unsafe { thread::at(other) }.mask;
            found = Some(found.unwrap_or(!0) & mask);
        }
    });
    found
}

/// Is the place in the bitmap?
pub fn is_in(places: &[u64; WORDS], place: u32) -> bool {
    places[place as usize / 64] >> (place % 64) & 1 != 0
}

/// Where a thread that stands still goes on.
fn standing_context(t: &Thread) -> ThreadContext {
    let mut regs = t.regs;
    match t.standing.load(Acquire) {
        standing::IN_CALL => {
            (regs.rip, regs.rax) = (regs.rip - 2, t.call);
            context_of(t, regs, PendingCall::default())
        }
        standing::IN_PART => context_of(t, regs, t.pending_call),
        _ => context_of(t, regs, PendingCall::default()),
    }
}
