//! How many page faults this thread took: every first write to an armed page is one.

use crate::sys::{nr, syscall};

/// Minor and major faults, those that the kernel met on the thread's behalf included. 0.4 µs.
pub fn fault_count() -> u64 {
    let mut usage = [0u64; 18];
    // SAFETY: getrusage writes 144 bytes.
    unsafe { syscall!(nr::GETRUSAGE, 1, usage.as_mut_ptr()) };
    usage[8].wrapping_add(usage[9])
}
