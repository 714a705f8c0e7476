//! Signals of a restored program, held until it waits.
//!
//! Most of what a restored program gets again came while its predecessor waited, or could not come at all. Taken earlier,
//! by a program that looks only after a wait at what its handler noted, a signal would be overlooked. So every signal stays
//! blocked until the program issues a call that may wait, which the signal then interrupts. Who computes gets it a little
//! later.

use crate::dispatch;
use crate::frame::Ucontext;
use crate::signals::{self, kernel_mask};
use crate::sys::{nr, syscall};
use crate::thread::Thread;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

/// How long at most.
const HOLD_NS: u64 = 5_000_000;
const CLOCK_MONOTONIC: u64 = 1;
const TIMER_DELETE: u64 = 226;

static HELD: AtomicU32 = AtomicU32::new(0);
static TIMER: AtomicI32 = AtomicI32::new(-1);

/// Are they held now?
#[inline(always)]
pub fn is_on() -> bool {
    HELD.load(Relaxed) != 0
}

/// A process that was just restored holds nothing yet. Rolled back in place, it may have held something.
pub fn reset() {
    HELD.store(0, Relaxed);
    delete_timer();
}

fn delete_timer() {
    let timer = TIMER.swap(-1, Relaxed);
    if timer >= 0 {
        // SAFETY: the timer is the engine's own.
        unsafe { syscall!(TIMER_DELETE, timer) };
    }
}

/// Holds what is pending, if it is anything that the program has not blocked. To be called with every signal blocked.
pub fn begin(t: &Thread) {
    let mut pending = 0u64;
    // SAFETY: asks only; the kernel writes eight bytes.
    unsafe { syscall!(nr::RT_SIGPENDING, &raw mut pending, 8) };
    if pending & !t.mask == 0 || crate::world::has_several() {
        return;
    }
    if let Some(timer) = crate::periodic::knock_after(CLOCK_MONOTONIC, HOLD_NS, HOLD_NS) {
        TIMER.store(timer, Relaxed);
        HELD.store(1, Relaxed);
        dispatch::slow_down_waits(true);
    }
}

fn end() -> bool {
    if HELD.swap(0, Relaxed) == 0 {
        return false;
    }
    dispatch::slow_down_waits(false);
    delete_timer();
    true
}

/// The program is about to wait, to become another or to end: what was held comes now.
#[inline]
pub fn release(t: &Thread) {
    if is_on() && end() {
        signals::set_kernel_mask(t.mask);
    }
}

/// The same in a handler that has interrupted the program in its own code: when it returns.
pub fn release_on_return(t: &Thread, uc: &mut Ucontext) {
    if end() {
        uc.sigmask = kernel_mask(t.mask);
    }
}
