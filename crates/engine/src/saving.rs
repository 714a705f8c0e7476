//! Written pages go from memory into the record being built.

use crate::advice::Advice;
use crate::hot::HotSet;
use crate::mutant::without;
use crate::own_faults;
use crate::own_files;
use crate::regions;
use crate::tracker::{Pages, Standing, Track};
use crate::unreadable;
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// What saving needs of the engine.
pub struct Saving<'a> {
    pub store: &'a mut Store<'static, MappedRegion>,
    pub hot: &'a mut HotSet,
    pub advice: &'a Advice,
    /// Pages saved.
    pub count: usize,
    /// Pages were met outside the regions that were committed last.
    pub has_grown: bool,
}

impl Pages for Saving<'_> {
    fn standing(&self, page: u64) -> Standing {
        if self.hot.contains(page) {
            Standing::Hot
        } else if self.store.contains(own_files::key(page)) {
            Standing::Saved
        } else {
            Standing::New
        }
    }

    fn hot_within(&self, start: u64, end: u64) -> usize {
        self.hot.within(start, end)
    }

    fn keep_open(&mut self, tracker: &mut dyn Track, page: u64) -> bool {
        if own_files::key_of(page).is_some() {
            return false;
        }
        match self.standing(page) {
            Standing::Hot => true,
            Standing::Saved if self.hot.has_room(page) && tracker.leave_open(page, page + 4096) => {
                self.save_page(page);
                self.hot.keep(page, self.store.seq() + 1);
                true
            }
            _ => false,
        }
    }

    fn save(&mut self, tracker: &mut dyn Track, start: u64, end: u64) {
        let advice = self.advice;
        own_faults::tracked(start, end, |start, end| {
            advice.each_unguarded(start, end, |start, end| {
                own_files::each_part(start, end, |start, end, key| match key {
                    None => self.save_unguarded(tracker, start, end),
                    Some(key) => self.save_own_file(tracker, start, end, key),
                });
            });
        });
    }
}

impl Saving<'_> {
    fn save_unguarded(&mut self, tracker: &mut dyn Track, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let standing = self.standing(at);
            let mut stop = at + 4096;
            while stop < end && self.standing(stop) == standing {
                stop += 4096;
            }
            match standing {
                Standing::Hot => {}
                Standing::Saved if without(Mutant::DirtyPage) => tracker.arm(at, stop),
                Standing::Saved => self.save_known(tracker, at, stop),
                Standing::New => self.save_new(tracker, at, stop),
            }
            at = stop;
        }
    }

    /// Pages of a file of the program's own, which may be mapped elsewhere as well: the store has them under `key`, and none becomes hot.
    fn save_own_file(&mut self, tracker: &mut dyn Track, start: u64, end: u64, key: u64) {
        self.has_grown |= !regions::are_known(start, end);
        tracker.private(start, end, &mut |from, to| {
            self.count += ((to - from) / 4096) as usize;
            unreadable::each_readable(from, to, |a, b| {
                // SAFETY: as in `save_page`.
                let pages = unsafe { core::slice::from_raw_parts(a as *const u8, (b - a) as usize) };
                self.store.pages(key + (a - start), pages);
            });
        });
        tracker.arm(start, end);
    }

    /// Most of it may be untouched file pages or zeroes, which need no room.
    fn save_new(&mut self, tracker: &mut dyn Track, start: u64, end: u64) {
        self.has_grown |= !regions::are_known(start, end);
        tracker.private(start, end, &mut |start, end| {
            self.count += ((end - start) / 4096) as usize;
            unreadable::each_readable(start, end, |a, b| {
                // SAFETY: as in `save_page`.
                self.store.pages(a, unsafe { core::slice::from_raw_parts(a as *const u8, (b - a) as usize) });
            });
        });
        tracker.arm(start, end);
    }

    /// Pages the store already has: candidates for the hot set. Pages that stay cold are armed run by run.
    fn save_known(&mut self, tracker: &mut dyn Track, start: u64, end: u64) {
        let seq = self.store.seq() + 1;
        self.hot.spans.written(start, end);
        let (mut from, mut at) = (start, start);
        while at < end {
            self.save_page(at);
            if self.hot.dirtied(at, seq) {
                if at > from {
                    tracker.arm(from, at);
                }
                from = at + 4096;
            }
            at += 4096;
        }
        if end > from {
            tracker.arm(from, end);
        }
    }

    #[inline]
    fn save_page(&mut self, address: u64) {
        self.count += 1;
        unreadable::each_readable(address, address + 4096, |at, _| {
            // SAFETY: the tracker reported the page as present in a region of the program; the program is parked, and the page
            // readable for the moment.
            let page = unsafe { &*(at as *const [u8; 4096]) };
            self.store.page(at, page);
        });
    }
}
