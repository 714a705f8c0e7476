//! What a client remembers of its descriptors, so that they can be recovered. Generic: what is remembered, and how it is
//! used, is generated.

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use crate::by_id::ById;
use crate::channel::{Channel, Interrupted, Reply};
use crate::error::CallError;
use crate::restorer::Restorer;

/// All descriptors of a client at one component. `D`: the data that is remembered.
pub struct Descriptors<D> {
    map: RwLock<ById<Arc<Descriptor<D>>>>,
    next: AtomicU64,
    /// The one that was used last, for who uses it again: a count of its own, or null.
    last: AtomicPtr<Descriptor<D>>,
}

/// A descriptor that is used. While it is, nobody else finds it in `last`.
pub struct Held<'a, D> {
    of: &'a Descriptors<D>,
    descriptor: ManuallyDrop<Arc<Descriptor<D>>>,
}

pub struct Descriptor<D> {
    /// As the client knows it; never changes.
    pub id: u64,
    /// The component's epoch in which `server` is valid.
    epoch: AtomicU32,
    /// As the component knows it now.
    server: AtomicU64,
    /// Nobody is to use it any more; it may be tracked all the same.
    closed: AtomicBool,
    inner: Mutex<Inner<D>>,
    /// Held across calls whose results add up, so that each is counted before the next begins.
    serial: Mutex<()>,
}

pub struct Inner<D> {
    /// The operation that created it.
    pub creator: u32,
    /// The operation that brought it to its state.
    pub state: u32,
    /// The place of that operation in the order of effects.
    sequence: u64,
    /// The epoch in which the component knew it last.
    known: u32,
    /// Epochs in which it was known before, and the place up to which the recovery after each went: of those epochs alone in which
    /// a thread may have a reply that it has not taken note of.
    recovered: Vec<(u32, u64)>,
    pub data: D,
    /// 0: none that is tracked.
    pub parent: u64,
    children: Vec<u64>,
}

impl<D> Default for Descriptors<D> {
    fn default() -> Self {
        Self { map: RwLock::default(), next: AtomicU64::new(1), last: AtomicPtr::default() }
    }
}

impl<D> Drop for Descriptors<D> {
    fn drop(&mut self) {
        drop(self.take_last());
    }
}

impl<D> std::ops::Deref for Held<'_, D> {
    type Target = Arc<Descriptor<D>>;

    fn deref(&self) -> &Self::Target {
        &self.descriptor
    }
}

impl<D> Drop for Held<'_, D> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, as the value ends.
        let descriptor = unsafe { ManuallyDrop::take(&mut self.descriptor) };
        drop(self.of.swap_last(Arc::into_raw(descriptor).cast_mut()));
    }
}

impl<D> Descriptors<D> {
    /// Tracks a new descriptor, under an id of its own where the component's may change with a recovery (`id` is None).
    pub fn insert(&self, id: Option<u64>, server: u64, creator: u32, parent: u64, data: D, reply: &Reply) -> u64 {
        let id = id.unwrap_or_else(|| self.next.fetch_add(1, Relaxed));
        let inner = Inner {
            creator,
            state: creator,
            sequence: reply.sequence,
            known: reply.epoch,
            recovered: Vec::new(),
            data,
            parent,
            children: Vec::new(),
        };
        let descriptor = Descriptor {
            id,
            epoch: AtomicU32::new(reply.epoch),
            server: AtomicU64::new(server),
            closed: AtomicBool::new(false),
            inner: Mutex::new(inner),
            serial: Mutex::new(()),
        };
        if let Ok(parent) = self.get(parent) {
            parent.lock().children.push(id);
        }
        if let Some(before) = self.write().insert(id, Arc::new(descriptor)) {
            before.closed.store(true, Release);
        }
        id
    }

    pub fn get(&self, id: u64) -> Result<Arc<Descriptor<D>>, CallError> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.get(&id).cloned().ok_or(CallError::Unknown(id))
    }

    /// One that is open; a closed one may stay tracked for its children's sake.
    pub fn open(&self, id: u64) -> Result<Held<'_, D>, CallError> {
        let last = self.take_last().filter(|last| last.id == id);
        let descriptor = match last {
            Some(last) if !last.closed.load(Acquire) => last,
            _ => self.get(id)?,
        };
        match descriptor.closed.load(Acquire) {
            false => Ok(Held { of: self, descriptor: ManuallyDrop::new(descriptor) }),
            true => Err(CallError::Unknown(id)),
        }
    }

    fn take_last(&self) -> Option<Arc<Descriptor<D>>> {
        self.swap_last(std::ptr::null_mut())
    }

    /// Puts a descriptor with its count there, or null, and takes what was there.
    fn swap_last(&self, descriptor: *mut Descriptor<D>) -> Option<Arc<Descriptor<D>>> {
        let before = self.last.swap(descriptor, AcqRel);
        // SAFETY: what is there came of `into_raw`, and whoever takes it out has its count alone.
        (!before.is_null()).then(|| unsafe { Arc::from_raw(before) })
    }

    /// Those directly below; D0 begins here.
    pub fn children(&self, descriptor: &Descriptor<D>) -> Vec<Arc<Descriptor<D>>> {
        let children = descriptor.lock().children.clone();
        children.into_iter().filter_map(|child| self.get(child).ok()).collect()
    }

    /// Forgets a closed descriptor; with `subtree` those below as well; with `keep` not before its children are gone.
    pub fn close(&self, id: u64, subtree: bool, keep: bool) {
        let Ok(descriptor) = self.get(id) else { return };
        descriptor.closed.store(true, Release);
        let inner = descriptor.lock();
        let (parent, children) = (inner.parent, inner.children.clone());
        drop(inner);
        if subtree {
            for child in children {
                self.close(child, true, false);
            }
        } else if keep && !children.is_empty() {
            // The component does not know it any more; for its children's sake it may have to be recovered there.
            descriptor.epoch.store(0, Release);
            return;
        }
        self.write().remove(&id);
        if let Ok(above) = self.get(parent) {
            let mut inner = above.lock();
            inner.children.retain(|child| *child != id);
            let last = above.closed.load(Relaxed) && inner.children.is_empty();
            drop(inner);
            if last {
                self.close(parent, false, keep);
            }
        }
    }

    pub fn count(&self) -> usize {
        self.map.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, ById<Arc<Descriptor<D>>>> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D> Descriptor<D> {
    /// The component's id for it if it is valid in this epoch: T1's fast path.
    #[inline]
    pub fn valid(&self, epoch: u32) -> Option<u64> {
        (self.epoch.load(Acquire) == epoch).then(|| self.server.load(Acquire))
    }

    /// The component's id for it, valid or not.
    pub fn server(&self) -> u64 {
        self.server.load(Acquire)
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner<D>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None where the condition ends before the lock can be had.
    fn lock_while(&self, wanted: impl Fn() -> bool) -> Option<MutexGuard<'_, Inner<D>>> {
        loop {
            match self.inner.try_lock() {
                Ok(inner) => return Some(inner),
                Err(TryLockError::Poisoned(inner)) => return Some(inner.into_inner()),
                Err(TryLockError::WouldBlock) if !wanted() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Has `attempt` bring it back in the component's epoch, again while the component dies over it. Returns that epoch, and the
    /// component's id for it. Others that need the descriptor wait here until it is recovered once. `asked`: the epoch in which
    /// the component wants it.
    #[cold]
    pub fn recover(
        &self,
        channel: &Channel,
        asked: Option<u32>,
        mut attempt: impl FnMut(&Inner<D>, u32) -> Result<u64, Interrupted>,
    ) -> Result<(u32, u64), CallError> {
        let mut restorer = Restorer::new(asked);
        let mut inner = match asked {
            None => self.lock(),
            Some(epoch) => self.lock_while(|| channel.epoch() == epoch).ok_or(CallError::Outdated)?,
        };
        loop {
            let epoch = channel.epoch();
            if let Some(server) = self.valid(epoch) {
                return Ok((epoch, server));
            }
            match attempt(&inner, epoch) {
                Ok(server) => {
                    self.recovered(&mut inner, epoch, server, |epoch| channel.used_in(epoch));
                    return Ok((epoch, server));
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    pub fn serial(&self) -> MutexGuard<'_, ()> {
        self.serial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The component knows it again. `used`: whether some thread made its last call in that epoch.
    fn recovered(&self, inner: &mut Inner<D>, epoch: u32, server: u64, used: impl Fn(u32) -> bool) {
        inner.recovered.push((inner.known, inner.sequence));
        inner.recovered.retain(|(epoch, _)| used(*epoch));
        inner.known = epoch;
        self.server.store(server, Release);
        self.epoch.store(epoch, Release);
    }

    /// Takes note of what a call did. False: somebody has recovered the descriptor without it, so it never happened.
    ///
    /// Replies may be noted in another order than the calls took effect: the state is that of the latest. One from before a
    /// recovery counts if that recovery went beyond it, the first one after its epoch: what later ones went beyond may have taken
    /// its place.
    pub fn track(&self, reply: &Reply, operation: u32, note: impl FnOnce(&mut D)) -> bool {
        let mut inner = self.lock();
        if self.epoch.load(Relaxed) != reply.epoch {
            let after = inner.recovered.iter().rev().find(|(epoch, _)| *epoch == reply.epoch);
            return after.is_some_and(|(_, sequence)| reply.sequence <= *sequence);
        }
        if reply.tracked && reply.sequence > inner.sequence {
            inner.sequence = reply.sequence;
            inner.state = operation;
            note(&mut inner.data);
        }
        true
    }

    /// The same for a call whose results add up, one at a time (`serial`), or that changed a resource.
    ///
    /// If the descriptor was recovered without it, the call is to be made again, for nobody has seen its result; or, where it
    /// has `happened` because data of a resource outlives the server, the descriptor is to be recovered once more.
    pub fn track_sum(&self, reply: &Reply, operation: u32, happened: bool, add: impl FnOnce(&mut D)) -> bool {
        let mut inner = self.lock();
        let current = self.epoch.load(Relaxed) == reply.epoch;
        if !current && !happened {
            return false;
        }
        if reply.tracked && reply.sequence > inner.sequence {
            inner.sequence = reply.sequence;
            inner.state = operation;
        }
        add(&mut inner.data);
        if !current {
            self.epoch.store(0, Release);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, Descriptors};
    use crate::channel::Reply;
    use crate::layout::WORDS;

    fn reply(epoch: u32, number: u64) -> Reply {
        let sequence = u64::from(epoch) << 32 | number;
        Reply { words: [0; WORDS], bytes: Vec::new(), file: None, sequence, tracked: true, epoch }
    }

    fn recovered(descriptor: &Descriptor<u64>, epoch: u32, used: impl Fn(u32) -> bool) {
        descriptor.recovered(&mut descriptor.lock(), epoch, 1, used);
    }

    #[test]
    fn a_call_that_a_recovery_did_not_know_of_never_happened_however_many_follow() {
        let all = Descriptors::default();
        let id = all.insert(None, 1, 0, 0, 0u64, &reply(1, 1));
        let descriptor = all.get(id).expect("tracked");
        // Others were noted behind one of two calls whose threads are slow.
        let (before, lost) = (reply(1, 2), reply(1, 4));
        assert!(descriptor.track(&reply(1, 3), 3, |data| *data = 3));
        for epoch in 2..5 {
            recovered(&descriptor, epoch, |epoch| epoch == 1);
            assert!(descriptor.track(&reply(epoch, 1), epoch, |data| *data = u64::from(epoch)));
            assert!(descriptor.track(&before, 9, |data| *data = 9));
            assert!(!descriptor.track(&lost, 9, |data| *data = 9), "another call may have taken its place");
            let inner = descriptor.lock();
            assert_eq!((inner.state, inner.data, inner.recovered.len()), (epoch, u64::from(epoch), 1));
        }
        // Nothing is kept for threads that have gone on.
        recovered(&descriptor, 5, |_| false);
        assert!(descriptor.lock().recovered.is_empty());
    }

    #[test]
    fn what_was_used_last_is_nobodys_once_it_is_closed_or_replaced() {
        let all = Descriptors::default();
        let [first, second] = [1, 2].map(|server| all.insert(None, server, 0, 0, 0u64, &reply(1, server)));
        for id in [first, first, second, first] {
            assert_eq!(all.open(id).expect("open").id, id);
        }
        {
            // Of two that use it at the same time one finds it elsewhere.
            let (here, there) = (all.open(first).expect("open"), all.open(first).expect("open"));
            assert!(std::sync::Arc::ptr_eq(&here, &there));
        }
        all.close(first, false, false);
        assert!(all.open(first).is_err() && all.open(second).is_ok());
        // An id that is the component's may come again.
        let again = all.insert(Some(second), 7, 0, 0, 0u64, &reply(1, 9));
        assert_eq!(all.open(again).expect("open").server(), 7);
        drop(all.open(again));
        all.close(second, false, false);
        assert!(all.open(second).is_err());
    }
}
