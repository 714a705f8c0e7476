//! Pages that are dirtied again and again stay writable and are compared with a shadow copy at each commit
//! (0.1 µs a page) in place of a fault (1.2 µs).
//!
//! A page is promoted when it was dirtied in at least two of the last eight commits, and demoted after `limit` idle
//! commits, that is when comparing it has cost as much as a fault would. A page that is rewritten with the same content would cycle
//! in and out: the limit doubles when a page is dirtied again sooner than it took to demote it.

use crate::advice::Advice;
use crate::mutant::without;
use crate::scratch;
use crate::spans::Spans;
use crate::tracker::Track;
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Pages in the set at most.
pub const CAPACITY: usize = 512;
/// History is kept in so many sets of so many slots: with fewer slots in a set, pages that share one with hot pages would never become hot,
/// and cost a fault and a search at every commit.
const SETS: usize = 1024;
const WAYS: usize = 4;
/// Asked for together they cost a third of what a fault each does.
const SHADOWS_AT_ONCE: usize = 16;
const FIRST_LIMIT: u16 = 16;
const LAST_LIMIT: u16 = 4096;

#[derive(Clone, Copy)]
struct Hot {
    address: u64,
    idle: u16,
    limit: u16,
}

/// What is remembered of a page. The one that was dirtied longest ago makes room, unless it is hot.
#[derive(Clone, Copy)]
struct History {
    address: u64,
    /// The commit in which it was dirtied last, or left the set.
    seq: u64,
    /// Which of the last eight commits, the latest in the lowest bit, found it dirty; 0: it has left the set since.
    recent: u8,
    hot: bool,
    limit: u16,
}

/// See the module.
pub struct HotSet {
    /// Where nearly all pages are.
    pub spans: Spans,
    pages: [Hot; CAPACITY],
    count: usize,
    /// Shadow copies that can be written to without a page fault.
    shadows: usize,
    history: [[History; WAYS]; SETS],
}

fn within(pages: &[Hot], start: u64, end: u64) -> usize {
    pages.iter().filter(|page| (start..end).contains(&page.address)).count()
}

fn set(address: u64) -> usize {
    ((address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % SETS
}

/// What is remembered of the page, from now on if there was nothing. None: all that share its set are hot.
fn remembered(history: &mut [[History; WAYS]; SETS], address: u64) -> Option<&mut History> {
    let ways = &mut history[set(address)];
    if let Some(way) = ways.iter().position(|h| h.address == address) {
        return Some(&mut ways[way]);
    }
    let oldest = ways.iter_mut().filter(|h| !h.hot).min_by_key(|h| h.seq)?;
    *oldest = History { address, seq: 0, recent: 0, hot: false, limit: FIRST_LIMIT };
    Some(oldest)
}

/// No program has the page at address 0.
const UNUSED: [History; WAYS] = [History { address: 0, seq: 0, recent: 0, hot: false, limit: 0 }; WAYS];

impl HotSet {
    pub const fn new() -> Self {
        HotSet {
            spans: Spans::new(),
            pages: [Hot { address: 0, idle: 0, limit: 0 }; CAPACITY],
            count: 0,
            shadows: 0,
            history: [UNUSED; SETS],
        }
    }

    /// Forgets everything: a restored process starts cold.
    pub fn clear(&mut self) {
        self.spans.clear();
        (self.count, self.shadows) = (0, 0);
        self.history = [UNUSED; SETS];
    }

    /// Is the page in the set?
    #[inline]
    pub fn contains(&self, address: u64) -> bool {
        self.history[set(address)].iter().any(|h| h.address == address && h.hot) || self.spans.contains(address)
    }

    /// How many pages of a range are in the set.
    pub fn within(&self, start: u64, end: u64) -> usize {
        within(&self.pages[..self.count], start, end) + self.spans.within(start, end)
    }

    /// Appends the changed lines of every hot page to the record being built; calls `arm` for pages that leave.
    /// Returns the number of pages that had changed.
    #[inline]
    pub fn commit(&mut self, store: &mut Store<'_, MappedRegion>, mut arm: impl FnMut(u64, u64)) -> usize {
        let (mut dirty, mut i) = (self.spans.save(store, &mut arm), 0);
        while i < self.count {
            let p = &mut self.pages[i];
            if without(Mutant::HotPage) {
                i += 1;
                continue;
            }
            // SAFETY: hot pages are mapped and readable (what unmaps or protects them forgets them first); the program
            // is parked; shadow copies are the engine's own.
            let mask = unsafe { store.diff(p.address, p.address as *const [u8; 4096], scratch::shadow(i)) };
            if mask != 0 {
                dirty += 1;
                p.idle = 0;
            } else {
                p.idle += 1;
                if p.idle > p.limit {
                    arm(p.address, p.address + 4096);
                    self.remove(i, store.seq() + 1);
                    continue;
                }
            }
            i += 1;
        }
        dirty
    }

    /// A page that is not hot was dirtied and has been saved whole in commit `seq`. Promotes it if it is due:
    /// returns true if it is hot from now on and must stay writable.
    pub fn dirtied(&mut self, address: u64, seq: u64) -> bool {
        let Some(h) = remembered(&mut self.history, address) else { return false };
        let gap = seq.wrapping_sub(h.seq);
        if h.recent == 0 {
            h.limit = if gap <= h.limit.into() { (h.limit * 2).min(LAST_LIMIT) } else { FIRST_LIMIT };
        }
        h.recent = if gap < 8 { h.recent << gap | 1 } else { 1 };
        h.seq = seq;
        if h.recent.count_ones() < 2 || self.count == CAPACITY {
            return false;
        }
        h.hot = true;
        let limit = h.limit;
        self.promote(address, limit);
        true
    }

    /// Can the page become hot?
    pub fn has_room(&self, address: u64) -> bool {
        self.count < CAPACITY && self.history[set(address)].iter().any(|h| h.address == address || !h.hot)
    }

    /// A page for which there is room has been saved whole in commit `seq` and is writable: it is hot from now on.
    pub fn keep(&mut self, address: u64, seq: u64) {
        if let Some(h) = remembered(&mut self.history, address) {
            (h.seq, h.recent, h.hot) = (seq, 1, true);
            let limit = h.limit;
            self.promote(address, limit);
        }
    }

    fn promote(&mut self, address: u64, limit: u16) {
        if self.count == self.shadows {
            scratch::expect_shadows(self.count, SHADOWS_AT_ONCE);
            self.shadows += SHADOWS_AT_ONCE;
        }
        // SAFETY: the page was just read to save it; the shadow slot is the engine's own.
        unsafe { core::ptr::copy_nonoverlapping(address as *const [u8; 4096], scratch::shadow(self.count), 1) };
        self.pages[self.count] = Hot { address, idle: 0, limit };
        self.count += 1;
    }

    /// The pages of a range leave the set unsaved: their content is gone, or `left` has the tracker report them.
    pub fn forget(&mut self, start: u64, end: u64, mut left: impl FnMut(u64)) {
        let mut i = 0;
        while i < self.count {
            let a = self.pages[i].address;
            if a >= start && a < end {
                self.remove(i, 0);
                left(a);
            } else {
                i += 1;
            }
        }
    }

    /// All that was written is saved: see [`Spans::settle`].
    pub fn settle(&mut self, store: &Store<'_, MappedRegion>, tracker: &mut dyn Track, advice: &Advice) {
        let HotSet { spans, pages, count, .. } = self;
        let hot = |start, end| within(&pages[..*count], start, end);
        spans.settle(store, tracker, hot, |start, end| advice.wants_huge(start, end));
    }

    /// Page `i` leaves the set in commit `seq`.
    fn remove(&mut self, i: usize, seq: u64) {
        let address = self.pages[i].address;
        if let Some(h) = self.history[set(address)].iter_mut().find(|h| h.address == address) {
            (h.hot, h.recent, h.seq) = (false, 0, seq);
        }
        self.count -= 1;
        if i != self.count {
            self.pages[i] = self.pages[self.count];
            // SAFETY: two different shadow slots of the engine's own.
            unsafe { core::ptr::copy_nonoverlapping(scratch::shadow(self.count), scratch::shadow(i), 1) };
        }
    }
}
