//! A client was born anew: what the one before it had here goes, and what it still called for is not done.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::layout::{Slot, ABANDONED, SLOTS, WORDS};

use super::call::{Call, Incoming};
use super::monitor::{Inside, Monitor};
use super::Component;

impl<C: Component> Monitor<C> {
    /// Closes the client's descriptors, but for global ones, which others may use. Calls of the dead that wait end, and from here on
    /// none of theirs has any effect, for that is looked at under this lock.
    pub fn forget(&self, client: u32, slot: &Slot, place: u64) {
        let mut guard = self.enter();
        let inside = &mut *guard;
        if slot.owner.load(SeqCst) == ABANDONED {
            // Of one that died while it took over: what its successor has since then is not to be closed.
            return self.publish(slot, -libc::ECANCELED);
        }
        if !self.global {
            let knowns = inside.knowns.iter().filter(|(_, known)| known.client == client);
            let all: Vec<u64> = knowns.map(|(id, _)| *id).collect();
            for id in all {
                self.close(inside, client, id, slot, place);
                // The service may have refused; nobody can reach it any more.
                inside.knowns.remove(&id);
            }
        }
        let theirs = |place: u64| place as usize / SLOTS == client as usize;
        inside.waiters.values().flatten().filter(|waiter| theirs(waiter.place)).for_each(|waiter| self.wake(waiter));
        self.control.descriptors.store(inside.knowns.len() as u32, Relaxed);
        self.publish(slot, 0);
    }

    /// As if the client had called for it.
    fn close(&self, inside: &mut Inside<C>, client: u32, id: u64, slot: &Slot, place: u64) {
        let mut operations = inside.component.operations().iter().enumerate();
        let Some((operation, word)) = operations.find_map(|(at, operation)| Some((at as u32, operation.closes?)))
        else {
            return;
        };
        let mut words = [0; WORDS];
        words[word] = id;
        let (bytes, file, lost, released) = (Vec::new(), None, Vec::new(), Vec::new());
        let incoming = Incoming { client, operation, flags: 0, wanted: 0, words, bytes, file, lost, released };
        let mut call = Call::new(
            &incoming,
            &inside.knowns,
            &self.registry,
            &mut inside.kin,
            &mut inside.resources,
            &self.channels[client as usize],
            self.global,
        );
        if inside.component.dispatch(&mut call).is_err() {
            return inside.resources.rollback();
        }
        let Call { keeps, changes, .. } = call;
        inside.count += 1;
        let sequence = u64::from(self.epoch) << 32 | u64::from(inside.count);
        // What is closed before this one stays so, whatever happens to this one.
        slot.sequence.store(sequence, SeqCst);
        match keeps {
            true => inside.resources.commit(sequence, place),
            false => inside.resources.settle(),
        }
        changes.iter().for_each(|change| change.apply(&mut inside.knowns, client, false));
    }
}
