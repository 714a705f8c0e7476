//! The store's file system is full: the kernel answers a write into the mapped store with SIGBUS, and also the first touch of
//! a page of the program that was restored lazily and lies over a hole of the store.

use crate::control::degrade;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use core::sync::atomic::{AtomicBool, Ordering::*};
use outlast_image::degradation::Degradation;
use outlast_image::layout::{STORE_BASE, STORE_LEN};

static USED_UP: AtomicBool = AtomicBool::new(false);

/// Does a first touch of the page at `address` need room for the store?
pub fn takes(e: &Engine, address: u64) -> bool {
    address.wrapping_sub(STORE_BASE) < STORE_LEN || e.is_lazy(address, address + 1)
}

/// Called from the signal handler: puts a page of nothing where the store has no room, so that the writer finishes,
/// and remembers that nothing written since may be published.
pub fn used_up(address: u64) {
    USED_UP.store(true, Relaxed);
    // SAFETY: replaces a page over a hole of the file, whose committed state stays as it is, in this process.
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
    // SAFETY: at the gate, or on the way out of the process's restore.
    crate::restore::holes::fill(unsafe { crate::state::engine() });
    crate::native::suspend(Degradation::StoreFull);
}
