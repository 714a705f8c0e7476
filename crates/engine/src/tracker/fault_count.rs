//! How many page faults there were: every first write to an armed page is one.

use crate::sys::{nr, syscall};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

const RUSAGE_SELF: i32 = 0;
const RUSAGE_THREAD: i32 = 1;

/// Whose faults are counted.
static WHOSE: AtomicI32 = AtomicI32::new(RUSAGE_THREAD);

/// Counts those of all threads, and of threads that have ended, from now on.
pub fn count_all_threads() {
    WHOSE.store(RUSAGE_SELF, Relaxed);
}

/// Counts those of the running thread alone, in a fresh process.
pub fn count_one_thread() {
    WHOSE.store(RUSAGE_THREAD, Relaxed);
}

/// Minor and major faults, those that the kernel met on a thread's behalf included. 0.4 µs.
pub fn fault_count() -> u64 {
    let mut usage = [0u64; 18];
    // SAFETY: getrusage writes 144 bytes.
    unsafe { syscall!(nr::GETRUSAGE, WHOSE.load(Relaxed), usage.as_mut_ptr()) };
    usage[8].wrapping_add(usage[9])
}
