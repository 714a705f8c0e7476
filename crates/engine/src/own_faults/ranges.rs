//! The ranges that the program's userfaultfds have. Also threads without the lock look here, before they touch the program's memory.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

use bytemuck::{Pod, Zeroable};

/// A range that a userfaultfd has.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    /// UFFDIO_REGISTER_MODE_*, as the program has them.
    pub modes: u64,
    /// The inode of the userfaultfd.
    pub owner: u64,
}

/// Beside the modes: the userfaultfd tells the program of writes, and not the engine.
pub const COMPARED: u64 = 1 << 32;

impl Range {
    pub fn is_compared(&self) -> bool {
        self.modes & COMPARED != 0
    }
}

/// Ranges at most.
pub const MOST: usize = 512;

/// A place is free if its end is 0.
struct Place {
    start: AtomicU64,
    end: AtomicU64,
    modes: AtomicU64,
    owner: AtomicU64,
}

static PLACES: [Place; MOST] = [const {
    Place { start: AtomicU64::new(0), end: AtomicU64::new(0), modes: AtomicU64::new(0), owner: AtomicU64::new(0) }
}; MOST];
/// So many places have been in use; 0 again when there is no range left.
static USED: AtomicUsize = AtomicUsize::new(0);
/// There is, or was, one that is compared.
static HAS_COMPARED: AtomicBool = AtomicBool::new(false);
/// They are no longer what the kernel has.
static ARE_LOST: AtomicBool = AtomicBool::new(false);

impl Place {
    fn range(&self) -> Option<Range> {
        let end = self.end.load(Acquire);
        let range = Range {
            start: self.start.load(Acquire),
            end,
            modes: self.modes.load(Acquire),
            owner: self.owner.load(Acquire),
        };
        (end != 0 && self.end.load(Acquire) == end).then_some(range)
    }

    fn set(&self, range: Range) {
        self.end.store(0, Release);
        self.start.store(range.start, Release);
        self.modes.store(range.modes, Release);
        self.owner.store(range.owner, Release);
        self.end.store(range.end, Release);
    }
}

/// Are there any?
#[inline(always)]
pub fn has_any() -> bool {
    USED.load(Relaxed) != 0
}

/// May there be any that are compared?
#[inline(always)]
pub fn has_compared() -> bool {
    HAS_COMPARED.load(Relaxed)
}

/// Calls `f` with each; `f` may change them, and what it adds may be met.
pub fn each(mut f: impl FnMut(Range)) {
    for range in PLACES.iter().take(USED.load(Acquire)).filter_map(Place::range) {
        f(range);
    }
}

/// Does one of them have the page?
pub fn serves(page: u64) -> bool {
    meets(page, page + 4096)
}

/// Does a range meet one of them?
pub fn meets(start: u64, end: u64) -> bool {
    let mut found = false;
    each(|range| found |= range.start < end && start < range.end);
    found
}

/// Calls `f` with the parts of a range that nobody here has, in ascending order.
pub fn gaps(start: u64, end: u64, f: impl FnMut(u64, u64)) {
    parts(start, end, |_| true, f);
}

/// Calls `f` with the parts of a range where a userfaultfd tells the engine of writes.
pub fn tracked(start: u64, end: u64, mut f: impl FnMut(u64, u64)) {
    match has_compared() {
        true => parts(start, end, Range::is_compared, f),
        false => f(start, end),
    }
}

/// Calls `f` with the parts of a range that none of some ranges has.
fn parts(start: u64, end: u64, is_one: impl Fn(&Range) -> bool, mut f: impl FnMut(u64, u64)) {
    let mut at = start;
    while at < end {
        let (mut covered, mut next) = (at, end);
        each(|range| {
            if !is_one(&range) {
            } else if range.start <= at && at < range.end {
                covered = covered.max(range.end);
            } else if range.start > at {
                next = next.min(range.start);
            }
        });
        if covered > at {
            at = covered;
            continue;
        }
        f(at, next);
        at = next;
    }
}

/// Adds a range where there is none. False: there is no room.
pub fn insert(range: Range) -> bool {
    let Some(n) = PLACES.iter().position(|place| place.end.load(Relaxed) == 0) else { return false };
    PLACES[n].set(range);
    HAS_COMPARED.fetch_or(range.is_compared(), Relaxed);
    USED.fetch_max(n + 1, Release);
    true
}

/// Is there room for so many more, each of which may be cut in two later?
pub fn has_room() -> bool {
    PLACES.iter().filter(|place| place.end.load(Relaxed) == 0).count() > MOST / 2
}

/// Was there no room for a range that was cut in two?
pub fn are_lost() -> bool {
    ARE_LOST.load(Relaxed)
}

/// Removes a range from all. True: something was there.
pub fn remove(start: u64, end: u64) -> bool {
    let mut found = false;
    for place in PLACES.iter().take(USED.load(Relaxed)) {
        let Some(range) = place.range().filter(|range| range.start < end && start < range.end) else { continue };
        found = true;
        if range.start < start && end < range.end && PLACES.iter().all(|place| place.end.load(Relaxed) != 0) {
            ARE_LOST.store(true, Relaxed);
            continue;
        }
        place.set(Range { end: 0, ..range });
        if range.start < start {
            place.set(Range { end: start, ..range });
        }
        if end < range.end {
            insert(Range { start: end, ..range });
        }
    }
    if PLACES.iter().all(|place| place.end.load(Relaxed) == 0) {
        USED.store(0, Release);
    }
    found
}

/// All of a context's belong to another one now; `compared`: which does not tell the engine of writes.
pub fn give(from: u64, to: u64, compared: bool) {
    for place in PLACES.iter().filter(|place| place.owner.load(Relaxed) == from) {
        place.owner.store(to, Release);
        if compared {
            place.modes.fetch_or(COMPARED, Release);
            HAS_COMPARED.store(true, Relaxed);
        }
    }
}

pub fn reset() {
    PLACES.iter().for_each(|place| place.end.store(0, Relaxed));
    USED.store(0, Release);
    HAS_COMPARED.store(false, Relaxed);
}
