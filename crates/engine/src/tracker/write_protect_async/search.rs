//! Finding what was written: where faults were taken and where pages are suspected, or everywhere.

use super::WriteProtectAsync;
use crate::own_faults;
use crate::pinned;
use crate::scratch;
use crate::tracker::pagemap_scan::{Run, Walk, Wanted};
use crate::tracker::places::{chunk_of, CHUNK};
use crate::tracker::{Pages, Standing, Track, WHERE};
use crate::user;

/// Runs that lie no further apart are looked at together.
const NEAR: u64 = 128 * 4096;
/// Faults that lie no further apart may be looked at together.
const CLOSE: u64 = 256 * 4096;
/// A walk over so many pages takes as long as arming one by itself (0.9 µs).
const PAGES_PER_ARMING: u64 = 256;
/// The same for a fault, which a hot page that a walk has armed takes in vain.
const PAGES_PER_FAULT: u64 = 512;

/// What was found, in units each of which took a fault of its own.
#[derive(Default)]
struct Found {
    units: u64,
    /// Chunk of the last new page.
    chunk: u64,
}

impl Found {
    /// Counts a run of written pages. True: there are new ones in it.
    fn count(&mut self, run: Run, pages: &dyn Pages) -> bool {
        let mut new = false;
        for page in (run.start..run.end).step_by(4096) {
            match pages.standing(page) {
                Standing::Hot => {}
                Standing::Saved => self.units += 1,
                Standing::New => {
                    new = true;
                    let chunk = chunk_of(page).0;
                    if chunk != self.chunk {
                        (self.chunk, self.units) = (chunk, self.units + 1);
                    }
                }
            }
        }
        new
    }
}

impl WriteProtectAsync {
    pub(super) fn collect(&mut self, start: u64, end: u64, pages: &mut dyn Pages) {
        let mut walk = self.walk_written(start, end);
        while let Some(runs) = walk.next() {
            for run in runs {
                self.recent.note(run.start);
                pages.save(self, run.start, run.end);
            }
        }
    }

    pub(super) fn everything(&mut self, pages: &mut dyn Pages) {
        // What is written from here on is the next commit's.
        self.faults.skip();
        self.suspects.clear();
        self.hints.clear();
        pinned::looked_at();
        self.forced = false;
        self.sweep.begin();
        for (low, high) in WHERE {
            let mut at = low;
            while let Some((start, end)) = self.large.next(at, high) {
                self.collect(at, start, pages);
                self.collect_large(start, end, pages);
                at = end;
            }
            self.collect(at, high, pages);
        }
        self.sweep.end();
    }

    /// As `collect`, by a quick look first. Elsewhere than in large tracked regions too much would be found that way.
    fn collect_large(&mut self, start: u64, end: u64, pages: &mut dyn Pages) {
        let mut walk = Walk::new(self.pagemap, start, end, Wanted::Unarmed, scratch::unarmed_runs());
        let mut near = (start, start);
        while let Some(runs) = walk.next() {
            for run in runs {
                if run.start - near.1 > NEAR {
                    self.collect(near.0, near.1, pages);
                    near.0 = run.start;
                }
                near.1 = run.end;
            }
        }
        self.collect(near.0, near.1, pages);
    }

    /// Looks only where something may be. False: there may be more elsewhere.
    pub(super) fn somewhere(&mut self, pages: &mut dyn Pages) -> bool {
        let Some(news) = self.faults.news() else { return false };
        self.look_at_faults(news.addresses, pages);
        while let Some((start, end)) = self.suspects.take() {
            self.look(start, end, pages, &mut Found::default());
        }
        // A page comes by a call, and a thread that waited for it writes there by the fault that it took before.
        own_faults::each_range(|range| {
            self.look_within(range.start, range.end, pages, &mut Found::default());
        });
        let mut found = Found::default();
        for (start, end) in pinned::ranges() {
            // A thread may wait for a futex for as long as the program runs.
            let page = start & !4095;
            if end - page > 4096 || !pages.keep_open(self, page) {
                self.written_by_kernel(start, end);
            }
        }
        while let Some((start, end)) = self.hints.take() {
            self.look(start, end, pages, &mut found);
        }
        pinned::looked_at();
        if self.forced {
            return false;
        }
        if self.faults.all_are_listed() {
            return true;
        }
        for chunk in self.recent.all() {
            if found.units >= news.unlisted {
                break;
            }
            if chunk != 0 {
                self.look(chunk, chunk_of(chunk).1, pages, &mut found);
            }
        }
        // More than that: somebody else wrote, too, and what was found may have been theirs. So it may if there were faults since they were
        // counted: the kernel writes to the page of rseq whenever it reschedules the thread, and again once that was armed.
        found.units == news.unlisted && (news.unlisted == 0 || !self.faults.any())
    }

    /// Saves the pages of faults; those that lie close together by one walk.
    fn look_at_faults(&mut self, addresses: &mut [u64], pages: &mut dyn Pages) {
        addresses.sort_unstable();
        for stretch in addresses.chunk_by(|a, b| b - a <= CLOSE) {
            let (start, end) = (stretch[0] & !4095, (stretch[stretch.len() - 1] & !4095) + 4096);
            let cold = stretch.iter().filter(|&&address| pages.standing(address & !4095) != Standing::Hot).count();
            let hot = pages.hot_within(start, end);
            if cold as u64 * PAGES_PER_ARMING > (end - start) / 4096 + hot as u64 * PAGES_PER_FAULT {
                self.walk_and_arm(start, end, pages);
            } else {
                self.look_at_pages(stretch, pages);
            }
        }
    }

    /// Saves what was written in a range, and the rest of the chunks in which a fault may have filled more than its page.
    fn walk_and_arm(&mut self, start: u64, end: u64, pages: &mut dyn Pages) {
        let mut found = Found::default();
        self.armed_by_walk = true;
        let mut walk = self.walk_written(start, end).arming();
        while let Some(runs) = walk.next() {
            for run in runs {
                found.count(*run, pages);
                pages.save(self, run.start, run.end);
            }
        }
        self.armed_by_walk = false;
        if found.chunk != 0 {
            self.look(chunk_of(start).0, chunk_of(end - 1).1, pages, &mut Found::default());
        }
    }

    /// Saves the pages of faults, and looks at all of the chunk of one that is new. A page that was not written after all
    /// is saved in vain.
    fn look_at_pages(&mut self, addresses: &[u64], pages: &mut dyn Pages) {
        let (mut run, mut done) = ((0, 0), 0);
        for address in addresses {
            let page = *address & !4095;
            if page < done {
                continue;
            }
            match pages.standing(page) {
                Standing::Hot => continue,
                Standing::Saved if run.1 == page => run.1 = page + 4096,
                Standing::Saved => {
                    self.save_readable(run, pages);
                    run = (page, page + 4096);
                }
                Standing::New => {
                    let (start, end) = chunk_of(page);
                    self.look(start, end, pages, &mut Found::default());
                    done = end;
                    continue;
                }
            }
            done = run.1;
        }
        self.save_readable(run, pages);
    }

    /// Saves pages without asking the kernel whether they were written: the fault may have failed, and then they may be
    /// out of reach.
    fn save_readable(&mut self, (start, end): (u64, u64), pages: &mut dyn Pages) {
        let mut byte = [0];
        if (start..end).step_by(4096).all(|page| user::read_bytes(page, &mut byte)) {
            if start < end {
                pages.save(self, start, end);
            }
        } else {
            self.look(start, end, pages, &mut Found::default());
        }
    }

    /// Looks at a range, and at all of the chunks in which there are new pages: they may be of one fault.
    fn look(&mut self, start: u64, end: u64, pages: &mut dyn Pages, found: &mut Found) {
        let (low, high) = (chunk_of(start).0, chunk_of(end - 1).1);
        if high - low > CHUNK {
            self.look_within(low, high, pages, found);
            return;
        }
        if !self.look_within(start, end, pages, found) {
            return;
        }
        if low < start {
            self.look_within(low, start, pages, found);
        }
        if end < high {
            self.look_within(end, high, pages, found);
        }
    }

    /// True: there are new pages in it.
    fn look_within(&mut self, start: u64, end: u64, pages: &mut dyn Pages, found: &mut Found) -> bool {
        if end - start >= CHUNK && !self.has_unarmed(start, end) {
            return false;
        }
        let mut new = false;
        let mut walk = self.walk_written(start, end);
        while let Some(runs) = walk.next() {
            for run in runs {
                new |= found.count(*run, pages);
                self.recent.note(run.start);
                pages.save(self, run.start, run.end);
            }
        }
        new
    }
}
