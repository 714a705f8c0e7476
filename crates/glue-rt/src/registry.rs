//! G0's memory: which client created a global descriptor, and its state, which several clients move. It outlives instances.
//!
//! One change at a time, for all are made in the monitor. It is undone if the instance dies before the reply to the call
//! that made it was published: then that call has not happened.
//!
//! Where closing a descriptor closes those below it, each knows its parent and is there as long as that is: so closing a whole
//! subtree is one change, too.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Global descriptors of a component.
const ENTRIES: usize = 8192;

#[repr(C)]
#[derive(Default)]
struct Entry {
    /// 0: never used; GONE: closed.
    id: AtomicU64,
    client: AtomicU32,
    state: AtomicU32,
    /// 0: none that it ends with.
    parent: AtomicU64,
}

const GONE: u64 = u64::MAX;

#[repr(C, align(4096))]
pub struct Registry {
    next: AtomicU64,
    /// The change under way: the sequence of its call (0: none), who made it, and what was there before.
    sequence: AtomicU64,
    place: AtomicU64,
    index: AtomicU64,
    before: Entry,
    entries: [Entry; ENTRIES],
}

/// What is known of a global descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    pub client: u32,
    pub state: u32,
    pub parent: u64,
}

impl Registry {
    /// An id that no descriptor has had.
    pub fn fresh(&self) -> u64 {
        self.next.fetch_add(1, SeqCst) + 1
    }

    pub fn find(&self, id: u64) -> Option<Noted> {
        let entry = &self.entries[self.index_of(id)?];
        let noted = Noted {
            client: entry.client.load(Relaxed),
            state: entry.state.load(Relaxed),
            parent: entry.parent.load(Relaxed),
        };
        self.within(noted.parent, 0).then_some(noted)
    }

    /// The way up from a descriptor: itself, its parent and so on.
    pub fn way_up(&self, mut id: u64) -> Vec<u64> {
        let mut way = Vec::new();
        while id != 0 && way.len() < ENTRIES {
            way.push(id);
            id = self.find(id).map_or(0, |noted| noted.parent);
        }
        way
    }

    /// Descriptors of any client below this one.
    pub fn below(&self, id: u64) -> Vec<u64> {
        let ids = self.entries.iter().filter(|entry| entry.parent.load(Relaxed) != 0);
        let ids = ids.map(|entry| (entry.id.load(Acquire), entry.parent.load(Relaxed)));
        ids.filter(|(below, parent)| !matches!(*below, 0 | GONE) && self.within(*parent, id))
            .map(|(below, _)| below)
            .collect()
    }

    /// Whether all on the way up from `id` are there, up to `top`, or up to the end where that is 0.
    fn within(&self, mut id: u64, top: u64) -> bool {
        // No way is longer than there are entries, whatever those say.
        for _ in 0..ENTRIES {
            if id == top {
                return true;
            }
            match self.index_of(id) {
                Some(index) => id = self.entries[index].parent.load(Relaxed),
                None => return false,
            }
        }
        false
    }

    /// Sets or, with None, removes what is known of a descriptor, on behalf of the call `sequence` made at `place`. False:
    /// full.
    pub fn note(&self, id: u64, noted: Option<Noted>, sequence: u64, place: u64) -> bool {
        if id == 0 || id == GONE {
            return false;
        }
        let Some(index) = self.index_of(id).or_else(|| self.room(id)) else { return false };
        let entry = &self.entries[index];
        self.sequence.store(0, SeqCst);
        copy(entry, &self.before);
        self.index.store(index as u64, Relaxed);
        self.place.store(place, Relaxed);
        self.sequence.store(sequence, SeqCst);
        match noted {
            Some(noted) => {
                entry.client.store(noted.client, Relaxed);
                entry.state.store(noted.state, Relaxed);
                entry.parent.store(noted.parent, Relaxed);
                entry.id.store(id, SeqCst);
            }
            None => entry.id.store(GONE, SeqCst),
        }
        true
    }

    /// Whoever made the last change is dead: takes it back if its call, named by sequence and place, has not happened, and
    /// forgets it.
    pub fn decide(&self, unpublished: impl FnOnce(u64, u64) -> bool) {
        let sequence = self.sequence.load(SeqCst);
        if sequence != 0 && unpublished(sequence, self.place.load(Relaxed)) {
            self.put_back();
        }
        self.sequence.store(0, SeqCst);
    }

    fn put_back(&self) {
        if let Some(entry) = self.entries.get(self.index.load(Relaxed) as usize) {
            // A place that was free may be in the way of others meanwhile: it stays taken.
            let free = self.before.id.load(Relaxed) == 0;
            copy(&self.before, entry);
            if free {
                entry.id.store(GONE, SeqCst);
            }
        }
    }

    fn probes(id: u64) -> impl Iterator<Item = usize> {
        let start = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (0..ENTRIES).map(move |step| (start as usize + step) % ENTRIES)
    }

    fn index_of(&self, id: u64) -> Option<usize> {
        let found = Self::probes(id).find(|&at| matches!(self.entries[at].id.load(Acquire), 0) || self.has(at, id))?;
        self.has(found, id).then_some(found)
    }

    fn has(&self, at: usize, id: u64) -> bool {
        id != 0 && id != GONE && self.entries[at].id.load(Acquire) == id
    }

    fn room(&self, id: u64) -> Option<usize> {
        Self::probes(id).find(|&at| match self.entries[at].id.load(Acquire) {
            0 | GONE => true,
            // Its parent was closed, by a call that has had its reply since.
            _ => !self.within(self.entries[at].parent.load(Relaxed), 0),
        })
    }
}

fn copy(from: &Entry, to: &Entry) {
    to.client.store(from.client.load(Relaxed), Relaxed);
    to.state.store(from.state.load(Relaxed), Relaxed);
    to.parent.store(from.parent.load(Relaxed), Relaxed);
    to.id.store(from.id.load(Relaxed), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::{Noted, Registry};

    fn empty() -> Box<Registry> {
        // SAFETY: atomics are valid when zero.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn the_last_change_is_undone_and_only_that() {
        let registry = empty();
        let (one, two) = (Noted { client: 3, state: 1, parent: 0 }, Noted { client: 3, state: 2, parent: 0 });
        assert!(registry.note(7, Some(one), 10, 0));
        assert!(registry.note(7, Some(two), 11, 0));
        registry.decide(|_, _| true);
        assert_eq!(registry.find(7), Some(one));
        registry.note(7, None, 12, 0);
        assert_eq!(registry.find(7), None);
        registry.decide(|_, _| true);
        assert_eq!(registry.find(7), Some(one));
        registry.note(8, Some(two), 13, 0);
        registry.decide(|_, _| true);
        assert_eq!((registry.find(8), registry.find(7)), (None, Some(one)));
    }

    #[test]
    fn it_holds_what_it_has_room_for_and_refuses_the_rest() {
        let registry = empty();
        let noted = Noted { client: 0, state: 5, parent: 0 };
        let held = (1..=10_000).filter(|id| registry.note(*id, Some(noted), *id, 0)).count();
        assert_eq!(held, super::ENTRIES);
        assert_eq!(registry.find(1), Some(noted));
        assert_eq!(registry.find(10_001), None);
    }

    #[test]
    fn what_is_below_goes_with_it_and_comes_back_with_it() {
        let registry = empty();
        let below = |parent| Some(Noted { client: 1, state: 0, parent });
        for (sequence, (id, parent)) in [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0)].into_iter().enumerate() {
            assert!(registry.note(id, below(parent), sequence as u64 + 1, 0));
        }
        let all = |top| {
            let mut all = registry.below(top);
            all.sort_unstable();
            all
        };
        assert_eq!((all(1), all(2), all(5)), (vec![2, 3, 4], vec![3], vec![]));
        registry.note(2, None, 6, 0);
        assert_eq!((registry.find(2), registry.find(3), all(1)), (None, None, vec![4]));
        registry.decide(|_, _| true);
        assert_eq!((registry.find(3), all(1)), (below(2), vec![2, 3, 4]));
        registry.note(1, None, 7, 0);
        assert!((1..5).all(|id| registry.find(id).is_none()) && registry.find(5).is_some());
    }

    #[test]
    fn places_of_what_went_with_its_parent_are_used_again() {
        let registry = empty();
        for turn in 0..4 {
            let parent = turn * 10_000 + 1;
            assert!(registry.note(parent, Some(Noted { client: 0, state: 0, parent: 0 }), parent, 0));
            for id in parent + 1..parent + super::ENTRIES as u64 {
                assert!(registry.note(id, Some(Noted { client: 0, state: 0, parent }), id, 0), "{id}");
            }
            assert!(!registry.note(parent + 9_999, Some(Noted { client: 0, state: 0, parent }), parent, 0));
            assert!(registry.note(parent, None, parent, 0));
        }
    }
}
