//! Of threads that print at the same time one leads: it commits for all, again and again.
//!
//! What a commit reads and writes lies in the caches of the processor that made the last one. Would each thread that comes with an
//! output commit by itself, all of that would move from processor to processor every time. So a thread leaves a free lock for a
//! moment to the one that committed last, which finds the offer when it comes with its next output.

use crate::thread::Thread;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Place of the thread that committed last for an output of its own.
static LEADER: AtomicU32 = AtomicU32::new(0);

/// How often a thread looks whether its offer was taken before it wants the lock: longer than a commit takes.
const LOOKS: u32 = 60;
/// How often in a row a thread waits in vain before it gives up.
const MOST_IN_VAIN: u32 = 2;
/// It tries again once in so many outputs.
const TRIES: u32 = 64;

/// The thread commits for an output of its own.
pub fn lead(t: &Thread) {
    LEADER.store(t.place, Relaxed);
}

/// How often the thread, which offers an output, shall look before it wants the lock.
pub fn patience(t: &mut Thread) -> u32 {
    if LEADER.load(Relaxed) == t.place {
        return 0;
    }
    if t.unled < MOST_IN_VAIN {
        return LOOKS;
    }
    t.unled += 1;
    if t.unled == TRIES {
        t.unled = MOST_IN_VAIN - 1;
    }
    0
}

/// The thread has waited so; `served`: and not in vain.
pub fn awaited(t: &mut Thread, served: bool) {
    t.unled = if served { 0 } else { t.unled + 1 };
}
