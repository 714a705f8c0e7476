//! What the program has advised of its memory (madvise) and the kernel keeps with a mapping: what a fork does with it, what a core
//! dump, huge pages, guards; and which mappings grow downwards. Nothing but the calls tells of it cheaply, so that they are noted; a
//! restored process is advised again.

use crate::control::degrade;
use crate::mutant::without;
use crate::regions;
use crate::state::{object, Engine};
use crate::sys::{nr, syscall};
use bytemuck::{Pod, Zeroable};
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;
use outlast_image::region::backing;

/// Ranges at most.
const MOST: usize = 1024;

/// An advice that is kept, and the one that takes it back.
struct Kind {
    advice: u64,
    opposite: u64,
    /// Bits that it clears besides.
    clears: u64,
}

const fn kind(advice: u64, opposite: u64) -> Kind {
    Kind { advice, opposite, clears: 0 }
}

/// In the order of their bits: RANDOM, SEQUENTIAL (NORMAL takes back both), DONTFORK, MERGEABLE, HUGEPAGE, NOHUGEPAGE, DONTDUMP,
/// WIPEONFORK, GUARD_INSTALL.
const KINDS: [Kind; 9] = [
    Kind { advice: 1, opposite: 0, clears: 1 << 1 },
    Kind { advice: 2, opposite: 0, clears: 1 << 0 },
    kind(10, 11),
    kind(12, 13),
    Kind { advice: 14, opposite: u64::MAX, clears: NOT_HUGE },
    Kind { advice: 15, opposite: u64::MAX, clears: HUGE },
    kind(16, 17),
    kind(WIPE_ON_FORK, 19),
    kind(GUARD_INSTALL, 103),
];
const WIPED: u64 = 1 << 7;
const LEFT_BEHIND: u64 = 1 << 2;
pub const WIPE_ON_FORK: u64 = 18;
pub const GUARD_INSTALL: u64 = 102;
const HUGE: u64 = 1 << 4;
const NOT_HUGE: u64 = 1 << 5;
const GUARDED: u64 = 1 << 8;
/// No advice: it was mapped so (MAP_GROWSDOWN).
const GROWING: u64 = 1 << 9;
/// WIPEONFORK, and, before Linux 6.15, GUARD_INSTALL.
const OF_ANONYMOUS: u64 = WIPED | GUARDED;

/// Of what it is said; bit `n` stands for `KINDS[n]`, the one after them for [`GROWING`].
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Range {
    start: u64,
    end: u64,
    bits: u64,
}

/// Ranges that lie apart, in ascending order.
pub struct Advice {
    ranges: [Range; MOST],
    count: usize,
    /// The ranges are not those in the store.
    dirty: bool,
    has_guards: bool,
    has_growing: bool,
}

impl Advice {
    pub const fn new() -> Advice {
        Advice {
            ranges: [Range { start: 0, end: 0, bits: 0 }; MOST],
            count: 0,
            dirty: false,
            has_guards: false,
            has_growing: false,
        }
    }

    /// What was mapped there grows downwards.
    pub fn grows(&mut self, start: u64, end: u64) {
        self.change(start, end, GROWING, 0);
    }

    /// Does anything of it grow downwards?
    pub fn is_growing(&self, start: u64, end: u64) -> bool {
        self.has_growing && self.with(GROWING).any(|range| range.0 < end && start < range.1)
    }

    /// The first range that a child of fork's has not (DONTFORK).
    pub fn left_behind(&self) -> Option<(u64, u64)> {
        self.with(LEFT_BEHIND).next()
    }

    /// Calls `f` with what a child of fork's finds empty (WIPEONFORK).
    pub fn each_wiped(&self, f: impl FnMut((u64, u64))) {
        self.with(WIPED).for_each(f);
    }

    fn with(&self, bit: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ranges = self.ranges[..self.count].iter();
        ranges.filter(move |range| range.bits & bit != 0).map(|range| (range.start, range.end))
    }

    /// The program has given the advice.
    pub fn given(&mut self, start: u64, end: u64, advice: u64) {
        for (n, kind) in KINDS.iter().enumerate() {
            if kind.advice == advice {
                self.change(start, end, 1 << n, kind.clears);
            } else if kind.opposite == advice {
                self.change(start, end, 0, 1 << n);
            }
        }
    }

    /// What the program has advised before anybody took note, by the marks that the kernel has for it. None tells of guards.
    pub fn found(&mut self, start: u64, end: u64, has: impl Fn(&[u8]) -> bool) {
        const MARKS: [(&[u8], u64); 8] = [
            (b"rr", 1),
            (b"sr", 2),
            (b"dc", 10),
            (b"mg", 12),
            (b"hg", 14),
            (b"nh", 15),
            (b"dd", 16),
            (b"wf", WIPE_ON_FORK),
        ];
        // The kernel's own, and those of devices, are marked by the kernel.
        if !has(b"de") {
            MARKS.iter().filter(|(mark, _)| has(mark)).for_each(|(_, advice)| self.given(start, end, *advice));
            if has(b"gd") {
                self.grows(start, end);
            }
        }
    }

    /// What was mapped there is not there any more.
    #[inline]
    pub fn unmapped(&mut self, start: u64, end: u64) {
        if self.count != 0 {
            self.change(start, end, 0, !0);
        }
    }

    /// A mapping was moved, and may have been cut off or extended.
    pub fn moved(&mut self, old: (u64, u64), new: (u64, u64), keep_old: bool) {
        if self.count == 0 {
            return;
        }
        if old.0 == new.0 {
            return self.change(new.1.min(old.1), old.1, 0, !0);
        }
        self.change(new.0, new.1, 0, !0);
        let mut from = old.0;
        while let Some(range) = self.ranges[..self.count].iter().find(|r| r.end > from && r.start < old.1).copied() {
            let to = |at: u64| (at.clamp(old.0, old.1) - old.0 + new.0).min(new.1);
            self.change(to(range.start), to(range.end), range.bits, 0);
            from = range.end;
        }
        if !keep_old {
            self.change(old.0, old.1, 0, !0);
        }
    }

    /// Is it said of memory in the range what the kernel does with anonymous memory only?
    pub fn is_of_anonymous(&self, start: u64, end: u64) -> bool {
        self.ranges[..self.count].iter().any(|r| r.start < end && start < r.end && r.bits & OF_ANONYMOUS != 0)
    }

    /// Does the program want huge pages in the range? None: it has said nothing of it.
    pub fn wants_huge(&self, start: u64, end: u64) -> Option<bool> {
        let range = self.ranges[..self.count]
            .iter()
            .find(|r| r.start < end && start < r.end && r.bits & (HUGE | NOT_HUGE) != 0)?;
        Some(range.bits & HUGE != 0 && range.start <= start && end <= range.end)
    }

    /// Calls `f` with the parts of a range that are not guarded: the kernel reports guards as written pages, which nobody can read.
    #[inline]
    pub fn each_unguarded(&self, start: u64, end: u64, mut f: impl FnMut(u64, u64)) {
        let mut from = start;
        if self.has_guards {
            for guard in
                self.ranges[..self.count].iter().filter(|r| r.bits & GUARDED != 0 && r.start < end && start < r.end)
            {
                if guard.start > from {
                    f(from, guard.start);
                }
                from = guard.end;
            }
        }
        if from < end {
            f(from, end);
        }
    }

    fn change(&mut self, start: u64, end: u64, add: u64, remove: u64) {
        if start >= end {
            return;
        }
        self.dirty = true;
        let mut has_room = self.split(start) && self.split(end);
        let (mut n, mut reached) = (0, start);
        while n < self.count && self.ranges[n].start < end {
            let range = self.ranges[n];
            if range.end <= start {
                n += 1;
                continue;
            }
            if add != 0 && range.start > reached {
                match self.insert(n, Range { start: reached, end: range.start, bits: add }) {
                    true => n += 1,
                    false => has_room = false,
                }
            }
            reached = range.end;
            self.ranges[n].bits = range.bits & !remove | add;
            n += 1;
        }
        if add != 0 && reached < end {
            has_room &= self.insert(n, Range { start: reached, end, bits: add });
        }
        self.tidy();
        if !has_room {
            degrade(Degradation::KernelObject);
        }
    }

    /// No range lies on both sides of `at`. False: there is no room for that.
    fn split(&mut self, at: u64) -> bool {
        let Some(n) = self.ranges[..self.count].iter().position(|r| r.start < at && at < r.end) else { return true };
        let rest = Range { start: at, ..self.ranges[n] };
        self.insert(n + 1, rest) && {
            self.ranges[n].end = at;
            true
        }
    }

    fn insert(&mut self, n: usize, range: Range) -> bool {
        if self.count == MOST {
            return false;
        }
        self.ranges.copy_within(n..self.count, n + 1);
        self.ranges[n] = range;
        self.count += 1;
        true
    }

    /// Joins neighbours of which the same is said, and forgets those of which nothing is.
    fn tidy(&mut self) {
        let mut kept = 0;
        for n in 0..self.count {
            let range = self.ranges[n];
            match self.ranges[..kept].last_mut() {
                _ if range.bits == 0 => {}
                Some(last) if last.end == range.start && last.bits == range.bits => last.end = range.end,
                _ => {
                    self.ranges[kept] = range;
                    kept += 1;
                }
            }
        }
        self.count = kept;
        self.sum_up();
    }

    fn sum_up(&mut self) {
        let all = self.ranges[..self.count].iter().fold(0, |bits, range| bits | range.bits);
        (self.has_guards, self.has_growing) = (all & GUARDED != 0, all & GROWING != 0);
    }

    /// Gives all of it again that concerns memory which was just mapped.
    pub fn give_again(&self, start: u64, end: u64) {
        if without(Mutant::Advice) {
            return;
        }
        for range in self.ranges[..self.count].iter().filter(|r| r.start < end && start < r.end) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            for (_, kind) in KINDS.iter().enumerate().filter(|(n, _)| range.bits >> n & 1 != 0) {
                // SAFETY: the program has said the same of the same memory; where it guards, there is nothing.
                unsafe { syscall!(nr::MADVISE, from, to - from, kind.advice) };
            }
        }
    }
}

/// What grows downwards has grown as far as `text`, a map of the process, says. To be called before a call cuts it into pieces as well.
pub fn follow_growth(e: &mut Engine, text: impl FnOnce() -> &'static [u8]) {
    if !e.advice.has_growing {
        return;
    }
    let advice = &mut e.advice;
    regions::for_each(text(), (e.kernel.start_brk, e.kernel.brk), |m| {
        let (start, end) = (m.region.start, m.region.end);
        if m.region.backing == backing::ANONYMOUS && advice.is_growing(start, end) {
            advice.grows(start, end);
        }
    });
}

/// Puts it into the commit.
pub fn save(e: &mut Engine) {
    if e.advice.dirty {
        if let Some(store) = &mut e.store {
            store.put(object::ADVICE, 0, bytemuck::cast_slice(&e.advice.ranges[..e.advice.count]));
            e.advice.dirty = false;
        }
    }
}

/// Reads it back. The store is untrusted: what is no range in its order is left out.
pub fn load(e: &mut Engine) {
    let buf = crate::scratch::object_buffer();
    let len = e.store().object(object::ADVICE, 0, buf).unwrap_or(0).min(MOST * size_of::<Range>());
    e.advice.count = 0;
    let mut reached = 0;
    for bytes in buf[..len].chunks_exact(size_of::<Range>()) {
        let range: Range = bytemuck::pod_read_unaligned(bytes);
        if range.start % 4096 == 0 && range.end % 4096 == 0 && reached <= range.start && range.start < range.end {
            e.advice.ranges[e.advice.count] = range;
            e.advice.count += 1;
            reached = range.end;
        }
    }
    e.advice.sum_up();
    e.advice.dirty = false;
}
