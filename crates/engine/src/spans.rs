//! Spans of 2 MiB that a computation writes all over from one commit at intervals to the next. They stay writable for some commits
//! and are saved whole: that spares a fault for each of their pages, and the kernel can have a transparent huge page there again, which
//! tracking by the small page takes apart. Then they are armed once, to see whether they are still written so: if they are, they stay open for
//! twice as many commits as before. What is armed is small pages again, which is what such a look costs; what is open and not written any more
//! is saved in vain.
//!
//! Where commits come for another reason, sooner after one another, all of it would be saved for a few pages: nothing stays open then.

use crate::mutant::without;
use crate::own_descriptors::Passing;
use crate::sys::{nr, syscall};
use crate::tracker::Track;
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

pub const SPAN: u64 = 2 << 20;
const PAGES: u64 = SPAN / 4096;
/// So many of its pages written make a span dense.
const DENSE: u64 = PAGES / 4 * 3;
/// In so many intervals in a row.
const STREAK: u8 = 2;
/// For so many commits it stays open at first, and at most.
const OPEN_FIRST: u8 = 2;
const OPEN_LONGEST: u8 = 32;
/// Direct-mapped, so that a collision only keeps a span armed.
const SLOTS: usize = 4096;
const MADV_COLLAPSE: u64 = 25;

#[derive(Clone, Copy)]
struct Span {
    address: u64,
    /// Pages written since the last commit.
    written: u16,
    streak: u8,
    /// Commits until it is armed again; 0: it is not open.
    left: u8,
    /// For how many it was opened last; 0: it has not been, or was written otherwise since.
    opened_for: u8,
}

/// No program has the span at address 0.
const NONE: Span = Span { address: 0, written: 0, streak: 0, left: 0, opened_for: 0 };

/// Where huge pages are wanted, by the administrator's word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HugePages {
    Unknown,
    Everywhere,
    /// Where the program has advised it.
    Advised,
    Nowhere,
}

/// See the module.
pub struct Spans {
    slots: [Span; SLOTS],
    open: usize,
    /// Some were closed by the commit that is being made, to see whether they are still written all over.
    closed: bool,
    /// The commit that is being made ends an interval.
    ends_interval: bool,
    /// Time stamp counter at the end of the last commit that the timer asked for, and ticks of it from there to the beginning of the next.
    ticked: u64,
    interval: u64,
    huge: HugePages,
}

fn slot(address: u64) -> usize {
    ((address >> 21).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % SLOTS
}

impl Spans {
    pub const fn new() -> Spans {
        Spans {
            slots: [NONE; SLOTS],
            open: 0,
            closed: false,
            ends_interval: false,
            ticked: 0,
            interval: 0,
            huge: HugePages::Unknown,
        }
    }

    /// A restored process starts with everything armed.
    pub fn clear(&mut self) {
        if self.ticked != 0 {
            (self.slots, self.open, self.ticked, self.interval) = ([NONE; SLOTS], 0, 0, 0);
        }
    }

    /// The timer has asked for a commit, which was made from `began` to `ended` by the time stamp counter. An interval is what the program
    /// has for itself: where commits take most of the time, because all of memory is written and armed again, it is not long, and what is
    /// written all over in it is so all the same.
    pub fn tick(&mut self, began: u64, ended: u64) {
        // Others ask for commits, too, at any time: that is no short interval.
        let interval = began.wrapping_sub(self.ticked).max(self.interval / 2);
        self.interval = if self.ticked == 0 { 0 } else { interval };
        self.ticked = ended;
    }

    /// A commit is made, at `now` by the time stamp counter.
    #[inline]
    pub fn begin(&mut self, now: u64, last_commit: u64) {
        self.ends_interval = self.interval != 0 && now.wrapping_sub(last_commit) >= self.interval / 4;
        self.closed = false;
    }

    /// Will the next commits have as much to save as the last ones?
    pub fn are_dense(&self) -> bool {
        self.open != 0 || self.closed
    }

    #[inline]
    pub fn contains(&self, page: u64) -> bool {
        self.open != 0 && {
            let (address, span) = (page & !(SPAN - 1), &self.slots[slot(page)]);
            span.address == address && span.left != 0
        }
    }

    /// How many pages of a range are in open spans.
    pub fn within(&self, start: u64, end: u64) -> usize {
        if self.open == 0 {
            return 0;
        }
        let overlap = |span: &Span| end.min(span.address + SPAN).saturating_sub(start.max(span.address)) / 4096;
        self.slots.iter().filter(|span| span.left != 0).map(overlap).sum::<u64>() as usize
    }

    /// Saves what is open, and arms what has been open for long enough. The number of pages.
    #[inline]
    pub fn save(&mut self, store: &mut Store<'_, MappedRegion>, arm: impl FnMut(u64, u64)) -> usize {
        if self.open == 0 {
            return 0;
        }
        self.save_open(store, arm)
    }

    #[inline(never)]
    fn save_open(&mut self, store: &mut Store<'_, MappedRegion>, mut arm: impl FnMut(u64, u64)) -> usize {
        let mut saved = 0;
        for span in self.slots.iter_mut().filter(|span| span.left != 0) {
            span.left -= 1;
            if span.left == 0 || !self.ends_interval {
                // Before it is saved: what is written from here on is the next commit's.
                arm(span.address, span.address + SPAN);
                (span.left, span.written) = (0, 0);
                (span.streak, span.opened_for) =
                    if self.ends_interval { (STREAK - 1, span.opened_for) } else { (0, 0) };
                self.open -= 1;
                self.closed = self.ends_interval;
            }
            // SAFETY: what unmaps an open span, or makes it unreadable, closes it first; the program is parked.
            let bytes = unsafe { core::slice::from_raw_parts(span.address as *const u8, SPAN as usize) };
            if !without(Mutant::OpenSpan) {
                store.pages(span.address, bytes);
            }
            saved += PAGES as usize;
        }
        saved
    }

    /// Pages of a range, which the store has, were written and are saved.
    #[inline]
    pub fn written(&mut self, start: u64, end: u64) {
        if self.ends_interval {
            self.count(start, end);
        }
    }

    fn count(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let address = at & !(SPAN - 1);
            let stop = end.min(address + SPAN);
            let span = &mut self.slots[slot(address)];
            if span.address != address && span.left == 0 && span.written == 0 {
                *span = Span { address, ..NONE };
            }
            if span.address == address {
                span.written = span.written.saturating_add(((stop - at) / 4096) as u16);
            }
            at = stop;
        }
    }

    /// All is saved: spans that were dense often enough are opened. `hot` says how many pages of a range are writable anyway,
    /// `advised` whether the program wants huge pages there, if it has said so.
    pub fn settle(
        &mut self,
        store: &Store<'_, MappedRegion>,
        tracker: &mut dyn Track,
        hot: impl Fn(u64, u64) -> usize,
        advised: impl Fn(u64, u64) -> Option<bool>,
    ) {
        if !self.ends_interval {
            return;
        }
        for n in 0..SLOTS {
            let span = self.slots[n];
            if span.address == NONE.address || span.left != 0 {
                continue;
            }
            let (start, end) = (span.address, span.address + SPAN);
            let is_dense = span.written > 0 && span.written as u64 + hot(start, end) as u64 >= DENSE;
            let streak = if is_dense { (span.streak + 1).min(STREAK) } else { 0 };
            let may_open = streak == STREAK && (start..end).step_by(4096).all(|page| store.contains(page));
            self.slots[n] = match streak {
                0 => NONE,
                _ => Span { written: 0, streak, ..span },
            };
            if may_open && tracker.leave_open(start, end) {
                let open_for = (2 * span.opened_for).clamp(OPEN_FIRST, OPEN_LONGEST);
                (self.slots[n].left, self.slots[n].opened_for) = (open_for, open_for);
                self.open += 1;
                if self.wants_huge(advised(start, end)) {
                    // SAFETY: changes no content. Where it cannot be done small pages stay.
                    unsafe { syscall!(nr::MADVISE, start, SPAN, MADV_COLLAPSE) };
                }
            }
        }
    }

    /// Closes what overlaps a range and calls `closed` with each such span, which counts as written.
    #[inline]
    pub fn close(&mut self, start: u64, end: u64, mut closed: impl FnMut(u64, u64)) {
        if self.open == 0 {
            return;
        }
        for span in self.slots.iter_mut().filter(|span| span.left != 0) {
            if span.address < end && start < span.address + SPAN {
                closed(span.address, span.address + SPAN);
                *span = NONE;
                self.open -= 1;
            }
        }
    }

    fn wants_huge(&mut self, advised: Option<bool>) -> bool {
        if self.huge == HugePages::Unknown {
            self.huge = HugePages::of_this_system();
        }
        match self.huge {
            HugePages::Everywhere => advised != Some(false),
            HugePages::Advised => advised == Some(true),
            _ => false,
        }
    }
}

impl HugePages {
    fn of_this_system() -> HugePages {
        let mut text = [0u8; 64];
        let Ok(file) = Passing::open(c"/sys/kernel/mm/transparent_hugepage/enabled".as_ptr().cast(), 0) else {
            return HugePages::Nowhere;
        };
        // SAFETY: reads into the buffer.
        let n = unsafe { syscall!(nr::READ, file.fd, text.as_mut_ptr(), text.len()) };
        let text = &text[..n.max(0) as usize];
        let says = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
        match () {
            _ if says(b"[always]") => HugePages::Everywhere,
            _ if says(b"[madvise]") => HugePages::Advised,
            _ => HugePages::Nowhere,
        }
    }
}
