//! What a module allocates is counted while it runs.

use super::{watch, Overrun, RUNNING};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which counts for the module that runs; to be made the global one. Without it modules may take what they like.
pub struct Counting;

// SAFETY: the system's allocator does all of it; counting touches cells of this thread only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        System.alloc(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        System.alloc_zeroed(layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        System.dealloc(memory, layout);
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        System.realloc(memory, layout, size)
    }
}

fn count(bytes: isize) {
    // A thread that ends allocates without being counted.
    let _ = RUNNING.try_with(|running| {
        let Some(name) = running.blamed() else { return };
        let now = running.memory.get().saturating_add(bytes);
        running.memory.set(now);
        if bytes > 0 && now > running.memory_limit.get() {
            watch::leave(name, Overrun::Memory);
        }
    });
}
