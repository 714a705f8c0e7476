//! Dirty tracking: which pages the program (or the kernel for it) wrote since they were last armed.

pub mod areas;
mod fault_count;
mod fault_list;
mod fault_samples;
mod faults;
mod open_pages;
mod pagemap;
mod pagemap_scan;
mod places;
mod real_map;
mod sweep;
mod write_protect_async;
mod write_protect_signal;

pub use faults::Allowed;
pub use pagemap_scan::Run;
pub use real_map::RealMap;
pub use write_protect_async::WriteProtectAsync;
pub use write_protect_signal::kept_open::{contains as is_kept_open, threads_changed};
pub use write_protect_signal::{is_attached, on_write_fault, opened, watch_opening, WriteProtectSignal};

use crate::dispatch::Call;
use crate::futexes;
use crate::regions;
use crate::thread::Thread;
use areas::Area;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, USER_END};

/// The parts of the address space in which the program's memory can lie.
pub const WHERE: [(u64, u64); 2] = [(0x1000, ENGINE_BASE), (ENGINE_END, USER_END)];

/// What is known of the content of an area that is covered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// What is present there was never saved.
    Unsaved,
    /// Just mapped: nothing was written yet.
    Fresh,
    /// As in the store; it is armed next.
    Saved,
}

/// How the engine stands to a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Writable, and compared at every commit.
    Hot,
    /// In the store, and armed unless it was written since.
    Saved,
    /// Never saved.
    New,
}

/// What is done with the pages that a tracker finds.
pub trait Pages {
    fn standing(&self, page: u64) -> Standing;
    /// How many pages of a range are hot.
    fn hot_within(&self, start: u64, end: u64) -> usize;
    /// Has a page be hot, if that can be. True: it is, and nobody need ask whether it was written.
    fn keep_open(&mut self, tracker: &mut dyn Track, page: u64) -> bool;
    /// Saves written pages, and arms those that do not become hot.
    fn save(&mut self, tracker: &mut dyn Track, start: u64, end: u64);
}

/// What a tracker can do. Addresses are page-aligned; a page is *armed* when its next write will be reported.
pub trait Track {
    /// Begins in a fresh process; `fds` are two descriptor numbers it may use.
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64>;
    /// The two descriptors have these numbers now.
    fn renumber(&mut self, fds: [i32; 2]);
    /// An area was mapped. What cannot be written or is not the program's own need not be tracked.
    fn cover(&mut self, area: &Area, content: Content);
    /// Cheap: false only if no page can have been written for the first time since the last `changed`.
    fn may_have_changed(&mut self) -> bool;
    /// May there be pages in the range that were written since they were armed?
    fn may_be_written(&mut self, _start: u64, _end: u64) -> bool {
        true
    }
    /// Finds all present pages written since they were armed, in any order.
    fn changed(&mut self, pages: &mut dyn Pages);
    /// A commit is over: page faults taken during it were the engine's own, but for those at the page `unseen`, to which
    /// the kernel writes whenever it likes; 0 for none.
    fn commit_done(&mut self, unseen: u64);
    /// Among `start..end`, reports the pages whose content is the process's own: neither untouched file pages nor
    /// the zero page. A page that was never touched may be reported once it is armed: the kernel shows both alike.
    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64));
    /// The same, but for pages that are armed and not in memory: never touched, or swapped out (or just being moved) since
    /// they were saved.
    fn touched(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        self.private(start, end, f);
    }
    /// Arms pages.
    fn arm(&mut self, start: u64, end: u64);
    /// Makes pages that are saved writable: nobody asks whether they were written. False: that cannot be.
    fn leave_open(&mut self, _start: u64, _end: u64) -> bool {
        false
    }
    /// The kernel may have written there while the pages were being armed: they count as written.
    fn disarm(&mut self, start: u64, end: u64);
    /// Nothing is mapped there any more.
    fn uncover(&mut self, start: u64, end: u64);
    /// A page that is not armed was, or may have been, written, and was not saved.
    fn written(&mut self, page: u64);
    /// Makes the program's mprotect; what can be written afterwards is tracked.
    fn protect(&mut self, call: &Call) -> i64;
    /// `old..old + old_len` is about to be moved or resized by mremap; with `whole` all of it counts as written.
    fn before_move(&mut self, old: (u64, u64), whole: bool);
    /// It is now `new`. What was moved counts as written, under its new address.
    fn moved(&mut self, old: (u64, u64), new: (u64, u64), keep_old: bool);
    /// The kernel is about to write, or to seal, all of it: it is made writable.
    fn open(&mut self, start: u64, end: u64);
    /// The kernel writes there whenever it likes: never armed.
    fn pin(&mut self, page: u64);
    /// Puts together what tracking has cut into pieces. False: there is nothing to be gained.
    fn settle(&mut self) -> bool;
    /// The kernel may have written there, or made pages writable, by faults that this process did not take.
    fn written_by_kernel(&mut self, start: u64, end: u64);
    /// Pages may have been written anywhere, or have become writable, where `may_have_changed` cannot see it.
    fn written_behind(&mut self);
    /// Leaves the address space as it would be without a tracker.
    fn release(&mut self);
}

/// The tracker of this process: the best that the kernel offers, or the one that was asked for.
#[expect(clippy::large_enum_variant, reason = "there is one, and nowhere to put its content but here")]
pub enum Tracker {
    Async(WriteProtectAsync),
    Signal(WriteProtectSignal),
}

macro_rules! each {
    ($self:ident, $t:ident => $e:expr) => {
        match $self {
            Tracker::Async($t) => $e,
            Tracker::Signal($t) => $e,
        }
    };
}

impl Tracker {
    pub const fn new() -> Tracker {
        Tracker::Async(WriteProtectAsync::new())
    }

    /// Attaches the best tracker; with `by_signal` the one that works anywhere.
    pub fn choose(&mut self, fds: [i32; 2], by_signal: bool) -> Result<(), i64> {
        if !by_signal {
            *self = Tracker::new();
            if self.attach(fds).is_ok() {
                return Ok(());
            }
        }
        *self = Tracker::Signal(WriteProtectSignal);
        self.attach(fds)
    }

    /// Has the tracker use what tells of page faults. Looks everywhere now and then if it may `sweep`.
    pub fn watch_faults(&mut self, allowed: &Allowed, sweep: bool) {
        if let Tracker::Async(t) = self {
            t.watch_faults(allowed, sweep);
        }
    }

    /// From now on several threads take page faults.
    pub fn count_all_threads(&mut self) {
        if let Tracker::Async(t) = self {
            t.count_all_threads();
        }
    }

    /// Must it be told of this call, even though nothing but its result is the program's business?
    pub fn must_see(&self, call: u64) -> bool {
        match self {
            Tracker::Async(tracker) => tracker.must_see(call),
            Tracker::Signal(_) => {
                futexes::NUMBERS.contains(&call) || outlast_calls::row(call).is_some_and(|row| !row.outs().is_empty())
            }
        }
    }

    /// The kernel writes to the restartable sequence of the thread, if it has one, whenever it likes.
    pub fn pin_sequence(&mut self, t: &Thread) {
        if t.rseq[0] != 0 {
            self.pin(t.rseq[0] & !4095);
        }
    }

    /// Is there shared anonymous memory in the range, or was there?
    pub fn may_be_shared(&self, start: u64, end: u64) -> bool {
        match self {
            Tracker::Async(tracker) => tracker.may_be_shared(start, end),
            Tracker::Signal(_) => areas::find(start).is_some_and(|area| area.is(areas::area_flag::SHARED)),
        }
    }

    /// Looks after a range no more, which the next tracker of the same process is to look after. That this one ends is not enough: a
    /// child that is about to execute another program still holds what keeps it going.
    pub fn leave(&self, start: u64, end: u64) {
        if let Tracker::Async(t) = self {
            t.leave(start, end);
        }
    }

    /// Looks after a range as its mappings want it: somebody else did until now.
    pub fn cover_again(&mut self, start: u64, end: u64) {
        regions::for_each(regions::read_maps(), (0, 0), |m| {
            let (low, high) = (m.region.start.max(start), m.region.end.min(end));
            if low < high {
                self.cover(&Area { start: low, end: high, ..Area::of(&m.region) }, Content::Unsaved);
            }
        });
    }

    /// Is every page of a range there, in memory or swapped out? Not where pages were armed that are not there: the kernel shows both
    /// alike.
    pub fn are_present(&self, start: u64, end: u64) -> bool {
        match self {
            Tracker::Async(tracker) => tracker.are_present(start, end),
            Tracker::Signal(_) => true,
        }
    }

    /// Arms what is present of a range, and nothing that is not.
    pub fn arm_present(&self, start: u64, end: u64) {
        if let Tracker::Async(tracker) = self {
            tracker.arm_present(start, end);
        }
    }

    /// Reports the pages of a range that are the kernel's zeroes.
    pub fn zeroes(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        if let Tracker::Async(tracker) = self {
            tracker.zeroes(start, end, f);
        }
    }

    /// Reports the pages of a range that are present and the process's own, and whether the program has protected them against writing.
    pub fn own_runs(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64, bool)) {
        if let Tracker::Async(tracker) = self {
            let mut walk = tracker.own(start, end);
            while let Some(runs) = walk.next() {
                runs.iter().for_each(|run| f(run.start, run.end, !run.is_written()));
            }
        }
    }

    /// Reports the pages of a range that the program has protected against writing.
    pub fn protected(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        if let Tracker::Async(tracker) = self {
            tracker.protected(start, end, f);
        }
    }

    /// Has it any of a range?
    pub fn any_protected(&self, start: u64, end: u64) -> bool {
        matches!(self, Tracker::Async(tracker) if tracker.any_protected(start, end))
    }

    /// Are pages being written unnoticed?
    pub fn is_lost(&self) -> bool {
        matches!(self, Tracker::Signal(t) if t.is_lost())
    }

    /// Does the kernel alone know what was written, so that a rollback may rely on it?
    pub fn is_kernels(&self) -> bool {
        matches!(self, Tracker::Async(_))
    }

    /// Reports every page of the address space that was written since it was armed.
    pub fn each_written(&mut self, f: &mut dyn FnMut(u64, u64)) {
        if let Tracker::Async(tracker) = self {
            tracker.each_written(f);
        }
    }

    /// Arms all that [`Self::each_written`] would report.
    pub fn arm_written(&mut self) {
        if let Tracker::Async(tracker) = self {
            tracker.arm_written();
        }
    }

    /// Must memory be made writable before the kernel writes there for the program?
    #[inline(always)]
    pub fn guards_kernel_writes(&self) -> bool {
        matches!(self, Tracker::Signal(_))
    }
}

impl Track for Tracker {
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64> {
        each!(self, t => t.attach(fds))
    }

    fn renumber(&mut self, fds: [i32; 2]) {
        each!(self, t => t.renumber(fds))
    }

    fn cover(&mut self, area: &Area, content: Content) {
        each!(self, t => t.cover(area, content))
    }

    #[inline]
    fn may_have_changed(&mut self) -> bool {
        each!(self, t => t.may_have_changed())
    }

    fn may_be_written(&mut self, start: u64, end: u64) -> bool {
        each!(self, t => t.may_be_written(start, end))
    }

    fn changed(&mut self, pages: &mut dyn Pages) {
        each!(self, t => t.changed(pages))
    }

    #[inline]
    fn commit_done(&mut self, unseen: u64) {
        each!(self, t => t.commit_done(unseen))
    }

    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        each!(self, t => t.private(start, end, f))
    }

    fn touched(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        each!(self, t => t.touched(start, end, f))
    }

    fn arm(&mut self, start: u64, end: u64) {
        each!(self, t => t.arm(start, end))
    }

    fn leave_open(&mut self, start: u64, end: u64) -> bool {
        each!(self, t => t.leave_open(start, end))
    }

    fn disarm(&mut self, start: u64, end: u64) {
        each!(self, t => t.disarm(start, end))
    }

    fn uncover(&mut self, start: u64, end: u64) {
        each!(self, t => t.uncover(start, end))
    }

    fn written(&mut self, page: u64) {
        each!(self, t => t.written(page))
    }

    fn protect(&mut self, call: &Call) -> i64 {
        each!(self, t => t.protect(call))
    }

    fn before_move(&mut self, old: (u64, u64), whole: bool) {
        each!(self, t => t.before_move(old, whole))
    }

    fn moved(&mut self, old: (u64, u64), new: (u64, u64), keep_old: bool) {
        each!(self, t => t.moved(old, new, keep_old))
    }

    fn open(&mut self, start: u64, end: u64) {
        each!(self, t => t.open(start, end))
    }

    fn pin(&mut self, page: u64) {
        each!(self, t => t.pin(page))
    }

    fn settle(&mut self) -> bool {
        each!(self, t => t.settle())
    }

    fn written_by_kernel(&mut self, start: u64, end: u64) {
        each!(self, t => t.written_by_kernel(start, end))
    }

    fn written_behind(&mut self) {
        each!(self, t => t.written_behind())
    }

    fn release(&mut self) {
        each!(self, t => t.release())
    }
}
