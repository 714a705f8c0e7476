//! The store's file system is full: the kernel answers a write into the mapped store with SIGBUS.

use crate::control::degrade;
use crate::sys::{nr, syscall};
use core::sync::atomic::{AtomicBool, Ordering::*};
use outlast_image::degradation::Degradation;

static USED_UP: AtomicBool = AtomicBool::new(false);

/// Called from the signal handler: puts a page of nothing where the store has no room, so that the writer finishes,
/// and remembers that nothing written since may be published.
pub fn used_up(address: u64) {
    USED_UP.store(true, Relaxed);
    // SAFETY: replaces a page of the store's mapping in this process; the committed state in the file stays as it is.
    unsafe { syscall!(nr::MMAP, address & !4095, 4096, 3, 0x32, -1i64, 0) };
}

/// Must the present commit be given up?
#[inline(always)]
pub fn is_used_up() -> bool {
    USED_UP.load(Relaxed)
}

/// A restored process maps the store afresh.
pub fn reset() {
    USED_UP.store(false, Relaxed);
}

/// Suspends protection.
pub fn suspend() {
    degrade(Degradation::StoreFull);
    crate::native::suspend(Degradation::StoreFull);
}
