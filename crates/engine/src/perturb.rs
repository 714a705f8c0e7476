//! Other surroundings for a program that fails the same way from older generations, too (Wang, Huang, Fuchs and Kintala, "Progressive
//! retry", 1993; Qin et al., "Rx", 2005): a fault that depends on what lies beside what, or on who comes first, may not come again.

use crate::control::control;
use crate::sys::{err, nr, syscall, tsc};
use core::sync::atomic::{AtomicU64, Ordering::*};
use outlast_image::control::perturbation;

const PAGE: u64 = 4096;
/// On either side of a mapping.
const ROOM: u64 = 16 * PAGE;
/// Pages of room that a process gets: it is never given back.
const MOST: u32 = 1 << 16;

const PROT_READ_WRITE: u64 = 3;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_STACK: u64 = 0x20000;

/// One of so many calls is delayed, by at most so long.
const SHARE: u64 = 4;
const LONGEST_NS: u64 = 200_000;

fn is_on(bit: u32) -> bool {
    control().perturbation.load(Relaxed) & bit != 0
}

/// The room that a new mapping gets on either side, in bytes: what is written beyond its ends harms nobody.
pub fn room(addr: u64, len: u64, prot: u64, flags: u64) -> u64 {
    let is_plain = flags & !(MAP_NORESERVE | MAP_STACK) == MAP_PRIVATE_ANONYMOUS && prot == PROT_READ_WRITE;
    if !is_on(perturbation::ROOM) || addr != 0 || len == 0 || !is_plain {
        return 0;
    }
    let pages = (2 * ROOM / PAGE) as u32;
    let had = control().room.fetch_add(pages, AcqRel);
    if had + pages > MOST {
        control().room.store(had, Release);
        return 0;
    }
    ROOM
}

/// Are calls delayed?
pub fn delays() -> bool {
    is_on(perturbation::DELAYS)
}

/// A call has come to the gate.
#[inline]
pub fn delay() {
    if delays() {
        delay_some();
    }
}

#[cold]
fn delay_some() {
    static STATE: AtomicU64 = AtomicU64::new(0);
    // Another choice each time that the program comes here is what is wanted.
    let mut x = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed) ^ tsc();
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    if x % SHARE == 0 {
        let span = [0, (x >> 32) % LONGEST_NS];
        // SAFETY: sleeps; a signal that ends it is noted as ever.
        let r = unsafe { syscall!(nr::NANOSLEEP, span.as_ptr(), 0) };
        debug_assert!(r == 0 || r == err::EINTR);
    }
}
