//! What is known of the page faults since they were last asked about: their addresses, or at least their number.

use super::fault_count::{self, fault_count};
use super::fault_list::List;
use super::fault_samples::Samples;
use super::places::chunk_of;
use crate::control::control;
use crate::scratch;
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::*;
use outlast_image::fault_list::fault_source;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, USER_END};

/// What there may be to tell of faults.
pub struct Allowed {
    /// Descriptor of a fault list.
    pub list: Option<i32>,
    /// A number for a descriptor of samples.
    pub samples: Option<i32>,
}

enum Source {
    List(List),
    Samples(Samples),
    Count,
}

/// See the module.
pub struct Faults {
    source: Source,
    /// Faults of this thread that are accounted for, where the source does not list all.
    known: u64,
    /// How many there were when that was last asked.
    seen: u64,
}

/// Addresses of faults.
pub struct News {
    pub addresses: &'static mut [u64],
    /// Faults at addresses that are not known; at most so many pages, or groups of pages, were written otherwise.
    pub unlisted: u64,
}

impl Faults {
    pub const fn none() -> Faults {
        Faults { source: Source::Count, known: 0, seen: 0 }
    }

    /// The best source that there is.
    pub fn attach(allowed: &Allowed) -> Faults {
        fault_count::count_one_thread();
        let source = allowed
            .list
            .and_then(List::attach)
            .map(Source::List)
            .or_else(|| allowed.samples.and_then(Samples::attach).map(Source::Samples))
            .unwrap_or(Source::Count);
        let name = match source {
            Source::List(_) => fault_source::LIST,
            Source::Samples(_) => fault_source::SAMPLES,
            Source::Count => fault_source::COUNT,
        };
        control().fault_source.store(name, Relaxed);
        Faults { source, known: 0, seen: 0 }
    }

    /// From now on several threads take faults. Samples are of one thread.
    pub fn count_all_threads(&mut self) {
        fault_count::count_all_threads();
        if matches!(self.source, Source::Samples(_)) {
            self.source = Source::Count;
            control().fault_source.store(fault_source::COUNT, Relaxed);
        }
        self.known = 0;
    }

    /// Has there been a fault since it was last asked?
    #[inline]
    pub fn any(&mut self) -> bool {
        match &self.source {
            Source::List(list) => list.has_grown(),
            // Every sample is a fault that was counted.
            Source::Samples(_) | Source::Count => {
                self.seen = fault_count();
                self.seen != self.known
            }
        }
    }

    /// What is new. None: not all addresses of the list are known any more.
    pub fn news(&mut self) -> Option<News> {
        let room = scratch::fault_addresses();
        let mut n = 0;
        let mut note = |address| {
            if (ENGINE_BASE..ENGINE_END).contains(&address) || address >= USER_END {
                return;
            }
            if n < room.len() {
                room[n] = address;
            }
            n += 1;
        };
        let unlisted = match &mut self.source {
            Source::List(list) => list.take(&mut note).then_some(0),
            Source::Samples(samples) => {
                let mut listed = samples.take(&mut note);
                // A fault that is listed and not counted would stand for one that was counted and is not listed, and what that wrote
                // would be missed: neither count may miss one that came in between, such as the engine's first write to a page that a
                // fork has left shared.
                let mut now = fault_count();
                while now != self.seen {
                    self.seen = now;
                    listed = listed.and_then(|n| samples.take(&mut note).map(|more| n + more));
                    now = fault_count();
                }
                let taken = self.account(now);
                listed.and_then(|listed| taken.checked_sub(listed))
            }
            Source::Count => Some(self.account(fault_count())),
        };
        let addresses = room.get_mut(..n)?;
        unlisted.map(|unlisted| News { addresses, unlisted })
    }

    /// Of `now` faults those taken since the last time.
    fn account(&mut self, now: u64) -> u64 {
        now.wrapping_sub(core::mem::replace(&mut self.known, now))
    }

    /// Passes over what is new.
    pub fn skip(&mut self) {
        // The count first: a fault in between is then counted later, and not listed, which has everything looked at.
        match &mut self.source {
            Source::List(list) => list.skip(),
            Source::Samples(samples) => {
                self.known = fault_count();
                samples.skip();
            }
            Source::Count => self.known = fault_count(),
        }
    }

    /// Is there a fault at the page, or at a neighbour that could have filled it, among what is new?
    pub fn may_have_met(&mut self, page: u64) -> bool {
        match &mut self.source {
            Source::List(list) => list.has(|address| chunk_of(address) == chunk_of(page)),
            _ => self.any(),
        }
    }

    /// Are there no others than those whose addresses are known?
    pub fn all_are_listed(&self) -> bool {
        matches!(self.source, Source::List(_))
    }
}

/// Takes a page fault that a source of addresses must show, and returns its address.
pub fn probe() -> u64 {
    let at = scratch::fault_probe();
    // SAFETY: the page is the engine's own and holds nothing.
    unsafe {
        syscall!(nr::MADVISE, at, 4096, 4);
        (at as *mut u8).write_volatile(1);
    }
    at
}
