//! Pages that lie lazily over the store and that the store does not hold: a first touch takes room in the store's file system.
//! When that has none left, they get memory of the process's own.

use crate::regions;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::tracker::Track;

const PRIVATE_ANONYMOUS_FIXED_NORESERVE: u64 = 0x4032;

/// Gives all of them memory, as far as the kernel has mappings left.
pub fn fill(e: &mut Engine) {
    let (Some(store), tracker) = (&e.store, &mut e.tracker) else { return };
    let heap = (e.kernel.start_brk, e.kernel.brk);
    for &(low, high) in &e.lazy[..e.lazy_count] {
        regions::for_each(regions::read_maps(), heap, |m| {
            let (start, end) = (m.region.start.max(low), m.region.end.min(high));
            if start >= end {
                return;
            }
            let mut fill_gap = |from: u64, to: u64| {
                let mut reached = from;
                // What was written since the commit is in no store.
                tracker.touched(from, to, &mut |a, b| {
                    cover(reached, a, m.region.prot);
                    reached = b;
                });
                cover(reached, to, m.region.prot);
            };
            let mut reached = start;
            store.runs(start, end, &mut |at, _, len| {
                fill_gap(reached, at);
                reached = at + len;
            });
            fill_gap(reached, end);
        });
    }
}

/// Maps zeroes there.
fn cover(start: u64, end: u64, prot: u32) {
    if start < end {
        let flags = PRIVATE_ANONYMOUS_FIXED_NORESERVE;
        // SAFETY: nothing was ever written to these pages of the program.
        unsafe { syscall!(nr::MMAP, start, end - start, prot, flags, -1i64, 0) };
    }
}
