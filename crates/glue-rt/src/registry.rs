//! G0's memory: which client created a global descriptor, and its state, which several clients move. It outlives instances.
//!
//! One change at a time, for all are made in the monitor. It is undone if the instance dies before the reply to the call
//! that made it was published: then that call has not happened.
//!
//! Where closing a descriptor closes those below it, each knows its parent and is there as long as that is: so closing a whole
//! subtree is one change, too.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Global descriptors of a component.
const ENTRIES: usize = 8192;

#[repr(C)]
#[derive(Default)]
struct Entry {
    /// 0: none.
    id: AtomicU64,
    client: AtomicU32,
    state: AtomicU32,
    /// 0: none that it ends with.
    parent: AtomicU64,
}

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
    #[cfg(test)]
    pub fn empty() -> Box<Self> {
        // SAFETY: atomics are valid when zero.
        unsafe { Box::new_zeroed().assume_init() }
    }

    /// An id that no descriptor has had. There is room for it, if there is any.
    pub fn fresh(&self) -> u64 {
        let mut id = self.next.fetch_add(1, SeqCst) + 1;
        for _ in 1..ENTRIES {
            if self.is_free(self.place_of(id)) {
                break;
            }
            id = self.next.fetch_add(1, SeqCst) + 1;
        }
        id
    }

    pub fn find(&self, id: u64) -> Option<Noted> {
        let noted = self.entry(id)?.noted();
        self.within(noted.parent).then_some(noted)
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

    /// Descriptors that have a parent, and that.
    pub fn children(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ids = self.entries.iter().map(|entry| (entry.id.load(Acquire), entry.parent.load(Relaxed)));
        ids.filter(|(id, parent)| *id != 0 && *parent != 0 && self.within(*parent))
    }

    /// Whether all on the way up from `id` are there.
    fn within(&self, mut id: u64) -> bool {
        // No way is longer than there are entries, whatever those say.
        for _ in 0..ENTRIES {
            if id == 0 {
                return true;
            }
            match self.entry(id) {
                Some(entry) => id = entry.parent.load(Relaxed),
                None => return false,
            }
        }
        false
    }

    /// Sets or, with None, removes what is known of a descriptor, on behalf of the call `sequence` made at `place`. False:
    /// full.
    ///
    /// What is written here outlives the process, so that it is read again by the arguments as they came, not as registers have
    /// them meanwhile: one that was harmed ends before anything is changed that would not be undone.
    pub fn note(&self, id: u64, noted: Option<Noted>, sequence: u64, place: u64) -> bool {
        let wanted = Wanted { registry: self, id, noted, sequence, place };
        let entry = self.place_of(id);
        if id == 0 || self.entry(id).is_none() && !self.is_free(entry) {
            return false;
        }
        self.sequence.store(0, SeqCst);
        copy(entry, &self.before);
        self.index.store(id % ENTRIES as u64, Relaxed);
        self.place.store(place, Relaxed);
        self.sequence.store(sequence, SeqCst);
        assert!(
            black_box(&wanted).can_be_undone(),
            "what the registry is to undo is not what it was: this process is harmed"
        );
        match noted {
            Some(noted) => {
                entry.client.store(noted.client, Relaxed);
                entry.state.store(noted.state, Relaxed);
                entry.parent.store(noted.parent, Relaxed);
                entry.id.store(id, SeqCst);
            }
            None => entry.id.store(0, SeqCst),
        }
        assert!(black_box(&wanted).is_there(), "the registry has not what it was to have: this process is harmed");
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
            copy(&self.before, entry);
        }
    }

    /// An id has one place, so that it costs the same to find it, or that it is not there, however many there have been.
    fn place_of(&self, id: u64) -> &Entry {
        &self.entries[(id % ENTRIES as u64) as usize]
    }

    fn entry(&self, id: u64) -> Option<&Entry> {
        Some(self.place_of(id)).filter(|entry| id != 0 && entry.id.load(Acquire) == id)
    }

    /// Nobody can come back to what is there: nothing, or what went with its parent by a call that has had its reply since.
    fn is_free(&self, entry: &Entry) -> bool {
        entry.id.load(Acquire) == 0 || !self.within(entry.parent.load(Relaxed))
    }
}

/// A change, as it lies in memory.
struct Wanted<'a> {
    registry: &'a Registry,
    id: u64,
    noted: Option<Noted>,
    sequence: u64,
    place: u64,
}

impl Wanted<'_> {
    /// Nothing was changed yet, and what there is is on record.
    fn can_be_undone(&self) -> bool {
        let registry = self.registry;
        registry.sequence.load(SeqCst) == self.sequence
            && registry.place.load(Relaxed) == self.place
            && registry.index.load(Relaxed) == self.id % ENTRIES as u64
            && registry.before.is_as(registry.place_of(self.id))
    }

    fn is_there(&self) -> bool {
        let entry = self.registry.place_of(self.id);
        match self.noted {
            Some(noted) => entry.id.load(Acquire) == self.id && entry.noted() == noted,
            None => entry.id.load(Acquire) == 0,
        }
    }
}

impl Entry {
    fn noted(&self) -> Noted {
        let (client, state) = (self.client.load(Relaxed), self.state.load(Relaxed));
        Noted { client, state, parent: self.parent.load(Relaxed) }
    }

    fn is_as(&self, other: &Self) -> bool {
        self.id.load(Acquire) == other.id.load(Acquire) && self.noted() == other.noted()
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
    use std::sync::atomic::Ordering::SeqCst;

    use super::{copy, Noted, Registry, Wanted};

    #[test]
    fn the_last_change_is_undone_and_only_that() {
        let registry = Registry::empty();
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
        let registry = Registry::empty();
        let noted = Noted { client: 0, state: 5, parent: 0 };
        let held = (1..=10_000).filter(|id| registry.note(*id, Some(noted), *id, 0)).count();
        assert_eq!(held, super::ENTRIES);
        assert_eq!(registry.find(1), Some(noted));
        assert_eq!(registry.find(10_001), None);
    }

    #[test]
    fn what_is_not_on_record_as_it_was_meant_is_seen_to_be_so() {
        let registry = Registry::empty();
        let noted = Some(Noted { client: 3, state: 1, parent: 0 });
        assert!(registry.note(7, noted, 10, 5));
        let wanted = Wanted { registry: &registry, id: 7, noted, sequence: 10, place: 5 };
        // It is there, and another change of it could no longer be undone by what is on record.
        assert!(wanted.is_there() && !wanted.can_be_undone());
        copy(registry.place_of(7), &registry.before);
        assert!(wanted.can_be_undone());
        for harm in [&registry.sequence, &registry.place, &registry.index, &registry.before.id, &registry.before.parent]
        {
            for bit in 0..64 {
                harm.fetch_xor(1 << bit, SeqCst);
                assert!(!wanted.can_be_undone());
                harm.fetch_xor(1 << bit, SeqCst);
            }
        }
        let entry = registry.place_of(7);
        for bit in 0..64 {
            for harm in [&entry.id, &entry.parent] {
                harm.fetch_xor(1 << bit, SeqCst);
                assert!(!wanted.is_there() && !wanted.can_be_undone());
                harm.fetch_xor(1 << bit, SeqCst);
            }
        }
        assert!(wanted.is_there() && wanted.can_be_undone());
    }

    #[test]
    fn what_is_below_goes_with_it_and_comes_back_with_it() {
        let registry = Registry::empty();
        let below = |parent| Some(Noted { client: 1, state: 0, parent });
        for (sequence, (id, parent)) in [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0)].into_iter().enumerate() {
            assert!(registry.note(id, below(parent), sequence as u64 + 1, 0));
        }
        let all = || registry.children().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(all(), [2, 3, 4]);
        registry.note(2, None, 6, 0);
        assert_eq!((registry.find(2), registry.find(3), all()), (None, None, vec![4]));
        registry.decide(|_, _| true);
        assert_eq!((registry.find(3), all()), (below(2), vec![2, 3, 4]));
        registry.note(1, None, 7, 0);
        assert!((1..5).all(|id| registry.find(id).is_none()) && registry.find(5).is_some());
    }

    #[test]
    fn places_of_what_went_with_its_parent_are_used_again() {
        let registry = Registry::empty();
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

    #[test]
    fn an_id_is_found_at_once_and_a_fresh_one_has_room_however_many_there_have_been() {
        let registry = Registry::empty();
        let noted = Some(Noted { client: 0, state: 0, parent: 0 });
        let kept: Vec<u64> = (0..super::ENTRIES - 1).map(|_| registry.fresh()).collect();
        assert!(kept.iter().all(|id| registry.note(*id, noted, *id, 0)));
        let mut last = 0;
        for _ in 0..100 {
            let id = registry.fresh();
            assert!(id > last && registry.note(id, noted, id, 0), "{id}");
            assert!(registry.note(id, None, id, 0));
            last = id;
        }
        assert!(kept.iter().all(|id| registry.find(*id).is_some()));
    }
}
