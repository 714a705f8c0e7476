//! The lock of the engine, for programs with several threads.
//!
//! Who finds it taken looks at it for as long as a few commits take, then sleeps. Who gives it back wakes a sleeper only if
//! nobody is looking, who would have it sooner, or was woken already; and one now and then though somebody looks, so that no sleeper
//! is passed over for ever.
//! A thread that is woken where the processors are all busy displaces another, often one in the middle of the program's
//! code, for which the next commit must then wait: that, not the lock, is what would cost.

use crate::line::Line;
use crate::sys::{nr, syscall};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// 0: free, 1: held.
static HELD: AtomicU32 = AtomicU32::new(0);
/// Threads that look at it without sleeping.
static LOOKING: Line<AtomicU32> = Line(AtomicU32::new(0));
/// Threads that sleep, or are about to.
static SLEEPING: AtomicU32 = AtomicU32::new(0);
/// 1: a sleeper was woken and has not looked yet.
static WAKING: AtomicU32 = AtomicU32::new(0);
/// What sleepers sleep on: how often one was woken.
static WOKEN: AtomicU32 = AtomicU32::new(0);
/// How often the lock was given back while somebody slept and nobody was woken. Only the holder changes it.
static PASSED_OVER: AtomicU32 = AtomicU32::new(0);

/// How often the word is looked at before a thread sleeps.
const LOOKS: u32 = 500;
/// How often sleepers are passed over: about half a millisecond of commits.
const MOST_PASSED_OVER: u32 = 256;

/// What [`look`] has come to.
pub enum Look {
    /// The lock is taken.
    Taken,
    /// What was waited for is the case.
    Over,
    /// Neither.
    Nothing,
}

/// Looks for some time whether the lock can be taken, or something else has come about. For the first `patience` looks the lock is
/// left to others though it may be free.
pub fn look(mut patience: u32, is_over: impl Fn() -> bool) -> Look {
    if patience == 0 && try_take() {
        return Look::Taken;
    }
    LOOKING.0.fetch_add(1, SeqCst);
    let mut seen = Look::Nothing;
    for _ in 0..LOOKS {
        core::hint::spin_loop();
        if is_over() {
            seen = Look::Over;
        } else if patience > 0 {
            // Not even looking at it: that would take it from the cache of who has it.
            patience -= 1;
            continue;
        } else if try_take() {
            seen = Look::Taken;
        } else {
            continue;
        }
        break;
    }
    LOOKING.0.fetch_sub(1, SeqCst);
    seen
}

/// A thread that looked at the lock does not want it any more: who gave it back meanwhile may have left it to this one.
pub fn pass_on() {
    if HELD.load(SeqCst) == 0 && LOOKING.0.load(SeqCst) == 0 && SLEEPING.load(SeqCst) != 0 {
        wake();
    }
}

/// Takes the lock.
#[inline]
pub fn take() {
    if !try_take() {
        wait();
    }
}

/// Takes the lock if it is free.
pub fn try_take() -> bool {
    HELD.load(Relaxed) == 0 && HELD.compare_exchange(0, 1, SeqCst, Relaxed).is_ok()
}

#[inline(never)]
fn wait() {
    loop {
        if let Look::Taken = look(0, || false) {
            return;
        }
        let woken = WOKEN.load(SeqCst);
        SLEEPING.fetch_add(1, SeqCst);
        // The holder either sees this sleeper, or has given the lock back by now.
        let taken = try_take();
        if !taken {
            sleep(woken);
            WAKING.store(0, SeqCst);
        }
        SLEEPING.fetch_sub(1, SeqCst);
        if taken {
            return;
        }
    }
}

/// Gives the lock back.
#[inline]
pub fn give() {
    let passed_over = PASSED_OVER.load(Relaxed);
    HELD.store(0, SeqCst);
    if SLEEPING.load(SeqCst) == 0 || WAKING.load(SeqCst) != 0 {
        return;
    }
    if LOOKING.0.load(SeqCst) != 0 && passed_over < MOST_PASSED_OVER {
        // Another holder may change it at the same time: how often is no exact matter.
        PASSED_OVER.store(passed_over + 1, Relaxed);
        return;
    }
    PASSED_OVER.store(0, Relaxed);
    wake();
}

/// A fresh process image: nobody has it.
pub fn reset() {
    for word in [&HELD, &LOOKING.0, &SLEEPING, &WAKING, &PASSED_OVER] {
        word.store(0, Relaxed);
    }
}

/// The only thread has it.
pub fn hold() {
    HELD.store(1, Relaxed);
}

fn sleep(woken: u32) {
    const FUTEX_WAIT_PRIVATE: u64 = 128;
    // SAFETY: the word lies in memory for good.
    unsafe { syscall!(nr::FUTEX, WOKEN.as_ptr(), FUTEX_WAIT_PRIVATE, woken, 0) };
}

fn wake() {
    const FUTEX_WAKE_PRIVATE: u64 = 129;
    WAKING.store(1, SeqCst);
    WOKEN.fetch_add(1, SeqCst);
    // SAFETY: wakes only.
    let woken = unsafe { syscall!(nr::FUTEX, WOKEN.as_ptr(), FUTEX_WAKE_PRIVATE, 1) };
    if woken <= 0 {
        // Who was about to sleep has seen it, and looks again.
        WAKING.store(0, SeqCst);
    }
}
