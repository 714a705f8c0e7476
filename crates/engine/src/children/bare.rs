//! A large child begins with a store that has no memory in it, for to copy its parent's would keep that waiting: 0.4 ms a megabyte. What
//! it was born with is in the memory of its anchor, a clone as well, until the child's own first commit has saved it all.

use super::begin::has_its_memory;
use crate::control::control;
use crate::state::{Engine, ONE_THREAD};
use crate::sys::futex_wake;
use crate::tracker::Tracker;
use core::sync::atomic::Ordering::*;
use outlast_image::layout::{CONTEXT_PAGE, PAGE};

/// A child of fewer pages gets a copy: two clones of its page tables do not take much less.
const LARGE: u64 = (16 << 20) / PAGE;
/// The contexts of threads, which the store has all the same.
pub const KEPT: (u64, u64) = (CONTEXT_PAGE, CONTEXT_PAGE + 512 * PAGE);

/// Is a child of this program to begin so? Not if its memory may not be what it was at the commit, for other threads run on, or cannot be
/// written to where it is tracked.
pub fn is_wanted(e: &mut Engine) -> bool {
    let is_as_committed = e.threads == ONE_THREAD && has_its_memory(e);
    is_as_committed && matches!(e.tracker, Tracker::Async(_)) && e.store().stats().live_pages >= LARGE
}

/// Is its memory not in its store yet?
pub fn is_bare() -> bool {
    control().bare.load(Acquire) != 0
}

/// Is what the store of commit `seq` lacks in the anchor that this process comes from, or is one?
pub fn is_of_anchor(seq: u64) -> bool {
    is_bare() && control().bare.load(Acquire) == seq
}

/// The child's first commit was made.
pub fn is_stored() {
    if control().bare.swap(0, AcqRel) != 0 {
        futex_wake(&control().anchor_command);
    }
}
