//! Which descriptors are below which, as the registry's only writer knows it: so that closing one costs what is below it, not a look
//! at all there are.

use crate::by_id::ById;
use crate::registry::Registry;

#[derive(Default)]
pub(super) struct Kin {
    /// From the registry, when it is needed first.
    known: Option<Known>,
}

#[derive(Default)]
struct Known {
    parents: ById<u64>,
    children: ById<Vec<u64>>,
}

impl Kin {
    /// Descriptors of any client below this one.
    pub fn below(&mut self, registry: &Registry, id: u64) -> Vec<u64> {
        self.known.get_or_insert_with(|| Known::of(registry)).below(id)
    }

    /// It is in the registry.
    pub fn created(&mut self, id: u64, parent: u64) {
        if let Some(known) = self.known.as_mut().filter(|_| parent != 0) {
            known.add(id, parent);
        }
    }

    /// It is there no more, nor is what was below it.
    pub fn closed(&mut self, id: u64) {
        let Some(known) = &mut self.known else { return };
        for id in known.below(id).into_iter().chain([id]) {
            known.children.remove(&id);
            if let Some(parent) = known.parents.remove(&id) {
                if let Some(children) = known.children.get_mut(&parent) {
                    children.retain(|child| *child != id);
                }
            }
        }
    }
}

impl Known {
    fn of(registry: &Registry) -> Self {
        let mut known = Self::default();
        registry.children().for_each(|(id, parent)| known.add(id, parent));
        known
    }

    fn add(&mut self, id: u64, parent: u64) {
        if self.parents.insert(id, parent).is_none() {
            self.children.entry(parent).or_default().push(id);
        }
    }

    fn below(&self, id: u64) -> Vec<u64> {
        let mut all = self.children.get(&id).cloned().unwrap_or_default();
        let mut next = 0;
        while let Some(at) = all.get(next).copied() {
            all.extend(self.children.get(&at).into_iter().flatten());
            next += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Kin;
    use crate::registry::{Noted, Registry};

    #[test]
    fn what_is_below_is_known_whether_it_was_found_or_made() {
        let registry = Registry::empty();
        let note = |id, parent| assert!(registry.note(id, Some(Noted { client: 1, state: 0, parent }), id, 0));
        [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0)].into_iter().for_each(|(id, parent)| note(id, parent));
        let mut kin = Kin::default();
        let all = |kin: &mut Kin, top| {
            let mut all = kin.below(&registry, top);
            all.sort_unstable();
            all
        };
        assert_eq!((all(&mut kin, 1), all(&mut kin, 2), all(&mut kin, 5)), (vec![2, 3, 4], vec![3], vec![]));
        note(6, 3);
        kin.created(6, 3);
        assert_eq!((all(&mut kin, 1), all(&mut kin, 2)), (vec![2, 3, 4, 6], vec![3, 6]));
        registry.note(2, None, 7, 0);
        kin.closed(2);
        assert_eq!((all(&mut kin, 1), all(&mut kin, 2)), (vec![4], vec![]));
        // One that begins now finds the same.
        assert_eq!((all(&mut Kin::default(), 1), all(&mut Kin::default(), 2)), (vec![4], vec![]));
    }
}
