//! userfaultfd `WP_ASYNC` and `PAGEMAP_SCAN` (Linux ≥ 6.7): no fault handler, writes of the kernel are tracked too.
//!
//! A look at all of memory costs 1.3 to 2.6 ns a page, written or not, so it is avoided. What stands between two commits:
//! all present pages are armed, but for the hot ones and for untouched ones of files. A page that is written takes a fault
//! first. Where the addresses of all faults are known, only those are looked at. Where some are not, the faults are
//! counted: each written page, and each chunk with new pages in it, took at least one; once as many are found as there
//! were faults, there can be no more of them. What does not come out even ends in a look at everything.

use crate::dispatch::{native, Call};
use crate::own_faults;
use crate::pinned;
use crate::proc;
use crate::regions;
use crate::scratch;
use crate::sys::{err, nr, syscall};
mod search;

use crate::tracker::areas::{area_flag, Area, PROT_EXEC, PROT_WRITE};
use crate::tracker::faults::{Allowed, Faults};
use crate::tracker::pagemap_scan::{self, try_out, Walk, Wanted};
use crate::tracker::places::{Ranges, Recent};
use crate::tracker::sweep::Sweep;
use crate::tracker::{Content, Pages, Track};
use outlast_image::layout::USER_END;

const UFFD_API: u64 = 0xc018_aa3f;
const UFFD_REGISTER: u64 = 0xc020_aa00;
const UFFD_UNREGISTER: u64 = 0x8010_aa01;
const UFFD_WRITEPROTECT: u64 = 0xc018_aa06;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const REGISTER_MODE_WP: u64 = 2;
const USER_MODE_ONLY: u64 = 1;
const O_CLOEXEC: u64 = 0o2000000;

/// Ranges of at least this length are worth a quick look first.
const LARGE: u64 = 8 << 20;

/// See the module.
pub struct WriteProtectAsync {
    uffd: i32,
    pagemap: i32,
    faults: Faults,
    /// Written pages may be anywhere.
    forced: bool,
    /// Something cannot be armed (huge pages of hugetlbfs): written pages may be anywhere, always.
    blind: bool,
    /// Where pages may be written that took no fault.
    suspects: Ranges,
    /// Where the kernel may have met faults whose addresses are not known.
    hints: Ranges,
    recent: Recent,
    /// Where shared anonymous memory was mapped.
    shared: Ranges,
    /// There is no room for all of that.
    has_much_shared: bool,
    /// Large regions that are covered.
    large: Ranges,
    sweep: Sweep,
    /// What is being saved was armed by the walk that found it.
    armed_by_walk: bool,
}

impl WriteProtectAsync {
    pub const fn new() -> Self {
        WriteProtectAsync {
            uffd: 0,
            pagemap: 0,
            faults: Faults::none(),
            forced: false,
            blind: false,
            suspects: Ranges::new(),
            hints: Ranges::new(),
            recent: Recent::new(),
            shared: Ranges::new(),
            has_much_shared: false,
            large: Ranges::new(),
            sweep: Sweep::new(false),
            armed_by_walk: false,
        }
    }

    /// See [`super::Tracker::watch_faults`].
    pub fn watch_faults(&mut self, allowed: &Allowed, sweep: bool) {
        self.faults = Faults::attach(allowed);
        self.sweep = Sweep::new(sweep);
        self.forced = true;
    }

    /// See [`super::Tracker::count_all_threads`].
    pub fn count_all_threads(&mut self) {
        self.faults.count_all_threads();
        self.forced = true;
    }

    /// See [`super::Tracker::must_see`].
    pub fn must_see(&self, call: u64) -> bool {
        self.faults.all_are_listed() && pinned::goes_straight(call)
    }

    /// Has the kernel look after a range that can be written.
    fn register(&mut self, start: u64, end: u64) {
        self.suspect(start, end);
        let is_large = end - start >= LARGE || self.large.touches(start, end);
        if is_large && !self.large.add(start, end) {
            // The one that came last is the likeliest to be gone.
            self.large.take();
            self.large.add(start, end);
        }
        self.enlist(start, end);
    }

    /// Has the kernel keep a mark for every page of a range.
    fn enlist(&self, start: u64, end: u64) {
        own_faults::gaps(start, end, |start, end| {
            let mut arg = [start, end - start, REGISTER_MODE_WP, 0];
            // SAFETY: registering changes no content. Regions that cannot be tracked (vvar, special files) are refused with
            // EINVAL and hold nothing of the program's.
            unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_REGISTER, arg.as_mut_ptr()) };
        });
    }

    /// See [`super::Tracker::leave`].
    pub fn leave(&self, start: u64, end: u64) {
        own_faults::gaps(start, end, |start, end| {
            let range = [start, end - start];
            // SAFETY: changes no content. Of a predecessor's nothing is left to look after.
            unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_UNREGISTER, range.as_ptr()) };
        });
    }

    /// Reports every page that was written since it was armed.
    pub fn each_written(&self, f: &mut dyn FnMut(u64, u64)) {
        let mut walk = self.walk_written(0, USER_END);
        while let Some(runs) = walk.next() {
            for run in runs {
                f(run.start, run.end);
            }
        }
    }

    /// Arms all that was written, in one walk.
    pub fn arm_written(&mut self) {
        pagemap_scan::arm_written(self.pagemap, 0, USER_END);
        self.forced = true;
    }

    /// See [`super::Tracker::are_present`].
    pub fn are_present(&self, start: u64, end: u64) -> bool {
        pagemap_scan::are_present(self.pagemap, start, end)
    }

    /// See [`super::Tracker::arm_present`].
    pub fn arm_present(&self, start: u64, end: u64) {
        // Without room for results the kernel would mark what is missing, too.
        let mut walk = self.walk_written(start, end).arming();
        while walk.next().is_some() {}
    }

    /// See [`super::Tracker::protected`].
    pub fn protected(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let mut walk = Walk::new(self.pagemap, start, end, Wanted::Protected, scratch::own_runs());
        while let Some(runs) = walk.next() {
            runs.iter().for_each(|run| f(run.start, run.end));
        }
    }

    /// See [`super::Tracker::any_protected`].
    pub fn any_protected(&self, start: u64, end: u64) -> bool {
        pagemap_scan::any_protected(self.pagemap, start, end)
    }

    /// See [`super::Tracker::zeroes`].
    pub fn zeroes(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let mut walk = Walk::new(self.pagemap, start, end, Wanted::Zero, scratch::own_runs());
        while let Some(runs) = walk.next() {
            runs.iter().for_each(|run| f(run.start, run.end));
        }
    }

    /// Pages there may be written without being armed, and without a page fault.
    fn suspect(&mut self, start: u64, end: u64) {
        self.forced |= !self.suspects.add(start, end);
    }

    /// Will the next search look at the page?
    pub fn is_suspected(&mut self, page: u64) -> bool {
        self.forced
            || self.suspects.contains(page)
            || own_faults::serves(page)
            || self.hints.contains(page)
            || pinned::contains(page)
            || self.faults.may_have_met(page)
    }

    /// Was there a fault since the last search, who knows where?
    pub fn is_disturbed(&mut self) -> bool {
        !self.faults.all_are_listed() && self.faults.any()
    }

    /// Walks over the pages with content of their own. A run's pages are all armed, or none.
    pub fn own(&self, start: u64, end: u64) -> Walk {
        Walk::new(self.pagemap, start, end, Wanted::Own, scratch::own_runs())
    }

    fn walk_written(&self, start: u64, end: u64) -> Walk {
        Walk::new(self.pagemap, start, end.min(USER_END), Wanted::Written, scratch::written_runs())
    }

    fn has_unarmed(&self, start: u64, end: u64) -> bool {
        let room = &mut scratch::unarmed_runs()[..1];
        Walk::new(self.pagemap, start, end.min(USER_END), Wanted::Unarmed, room).next().is_some()
    }

    /// Is there shared memory in the range, or was there?
    pub fn may_be_shared(&self, start: u64, end: u64) -> bool {
        self.has_much_shared || self.shared.touches(start, end)
    }

    fn note_shared(&mut self, start: u64, end: u64) {
        self.has_much_shared |= !self.shared.add(start, end);
    }
}

impl Track for WriteProtectAsync {
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64> {
        // SAFETY: descriptors are created and moved to numbers that are the engine's.
        unsafe {
            let mut u = syscall!(nr::USERFAULTFD, O_CLOEXEC | 0o4000);
            if err::is(u) {
                u = syscall!(nr::USERFAULTFD, O_CLOEXEC | 0o4000 | USER_MODE_ONLY);
            }
            if err::is(u) {
                return Err(u);
            }
            let mut api = [0xaau64, FEATURE_WP_ASYNC | FEATURE_WP_HUGETLBFS_SHMEM, 0];
            let r = syscall!(nr::IOCTL, u, UFFD_API, api.as_mut_ptr());
            if err::is(r) {
                syscall!(nr::CLOSE, u);
                return Err(r);
            }
            let (dir, path) = proc::place(c"/proc/self/pagemap".as_ptr().cast());
            let p = syscall!(nr::OPENAT, dir, path, O_CLOEXEC, 0);
            if err::is(p) {
                syscall!(nr::CLOSE, u);
                return Err(p);
            }
            for (from, to) in [(u, fds[0]), (p, fds[1])] {
                let r = syscall!(nr::DUP3, from, to, O_CLOEXEC);
                syscall!(nr::CLOSE, from);
                if err::is(r) {
                    return Err(r);
                }
            }
        }
        [self.uffd, self.pagemap] = fds;
        (self.forced, self.blind) = (true, false);
        self.large.clear();
        match try_out(self.pagemap) {
            r if err::is(r) => Err(r),
            _ => Ok(()),
        }
    }

    fn renumber(&mut self, fds: [i32; 2]) {
        [self.uffd, self.pagemap] = fds;
    }

    fn cover(&mut self, area: &Area, content: Content) {
        if area.is(area_flag::SHARED) {
            self.note_shared(area.start, area.end);
        }
        if area.is_tracked() {
            self.register(area.start, area.end);
        } else if content == Content::Saved && !area.is(area_flag::FOREIGN) && area.prot & PROT_EXEC == 0 {
            // Restored. It may have been one mapping with its neighbour, and become one again when it can be written: the
            // kernel joins only what was marked alike when it was first written.
            self.enlist(area.start, area.end);
        }
    }

    #[inline]
    fn may_have_changed(&mut self) -> bool {
        self.forced
            || self.blind
            || own_faults::has_ranges()
            || !self.suspects.is_empty()
            || !self.hints.is_empty()
            || !pinned::is_empty()
            || self.sweep.is_due()
            || self.faults.any()
    }

    fn may_be_written(&mut self, start: u64, end: u64) -> bool {
        self.walk_written(start & !4095, end).next().is_some()
    }

    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let wanted = if self.may_be_shared(start, end) { Wanted::Shared } else { Wanted::Own };
        let mut walk = Walk::new(self.pagemap, start, end, wanted, scratch::own_runs());
        while let Some(runs) = walk.next() {
            for run in runs {
                f(run.start, run.end);
            }
        }
    }

    fn touched(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let mut walk = self.own(start, end);
        while let Some(runs) = walk.next() {
            for run in runs.iter().filter(|run| run.is_present() || run.is_written()) {
                f(run.start, run.end);
            }
        }
    }

    fn arm(&mut self, start: u64, end: u64) {
        if self.armed_by_walk {
            return;
        }
        own_faults::tracked(start, end, |start, end| {
            let mut arg = [start, end - start, 1];
            // SAFETY: write protection changes no content.
            let r = unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_WRITEPROTECT, arg.as_mut_ptr()) };
            // ENOENT: the region was unmapped meanwhile, or is not covered.
            self.blind |= err::is(r) && r != err::ENOENT;
        });
    }

    fn leave_open(&mut self, start: u64, end: u64) -> bool {
        let (mut all, mut left) = (true, end.saturating_sub(start));
        own_faults::tracked(start, end, |start, end| {
            let mut arg = [start, end - start, 0];
            // SAFETY: write protection changes no content. What is not tracked is refused.
            all &= unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_WRITEPROTECT, arg.as_mut_ptr()) } == 0;
            left -= end - start;
        });
        all && left == 0
    }

    fn disarm(&mut self, start: u64, end: u64) {
        self.leave_open(start, end);
        self.suspect(start, end);
    }

    fn changed(&mut self, pages: &mut dyn Pages) {
        // Where faults are counted, those that the kernel takes at the same time for threads that wait make the count worthless.
        let counted = crate::world::has_several() && !self.faults.all_are_listed();
        let anywhere = counted || self.forced || self.blind || pinned::is_anywhere() || self.sweep.is_due();
        let searched = !anywhere && self.somewhere(pages);
        if !searched {
            self.everything(pages);
        }
    }

    fn commit_done(&mut self, unseen: u64) {
        // With several threads, faults that the kernel takes for one that waits may be among them.
        if !self.faults.all_are_listed() && self.faults.any() && !crate::world::has_several() {
            self.faults.skip();
            if unseen != 0 {
                self.suspect(unseen, unseen + 1);
            }
        }
    }

    fn uncover(&mut self, _start: u64, _end: u64) {}

    fn written(&mut self, page: u64) {
        self.suspect(page, page + 1);
    }

    fn protect(&mut self, call: &Call) -> i64 {
        let [addr, len, prot, ..] = call.args;
        let r = native(call);
        if prot as u32 & PROT_WRITE != 0 {
            self.register(addr & !4095, addr.saturating_add(len).saturating_add(4095) & !4095);
        }
        r
    }

    fn before_move(&mut self, _old: (u64, u64), _whole: bool) {}

    fn moved(&mut self, old: (u64, u64), new: (u64, u64), _keep_old: bool) {
        if self.may_be_shared(old.0, old.1) {
            self.note_shared(new.0, new.1);
        }
        if new.0 == old.0 {
            return self.register(new.0, new.1);
        }
        // Moving takes a region out of the tracker's care, and with it the neighbours that it became one with.
        let (mut start, mut end) = new;
        regions::for_each(regions::read_maps(), (0, 0), |m| {
            if m.region.start < new.1 && new.0 < m.region.end {
                (start, end) = (start.min(m.region.start), end.max(m.region.end));
            }
        });
        self.register(start, end);
    }

    fn open(&mut self, _start: u64, _end: u64) {}

    fn pin(&mut self, _page: u64) {}

    fn settle(&mut self) -> bool {
        false
    }

    fn written_by_kernel(&mut self, start: u64, end: u64) {
        self.forced |= !self.hints.add(start, end);
    }

    fn written_behind(&mut self) {
        self.forced = true;
    }

    fn release(&mut self) {}
}
