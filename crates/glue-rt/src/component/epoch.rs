//! What is done between the death of an instance and the birth of the next.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::layout::{Slot, BLOCKED, CLIENTS, DONE, EAGER, FAULT, IDLE, LENT, REQUEST, SLOTS, TORN, UPCALL, WOKEN};
use crate::{futex, storage};

use super::instance::Memory;

/// The last instance is dead. What it left undone is undone, and threads that wait for it learn that it is gone. True if it
/// was wanted: a call was being executed.
pub fn begin_epoch(memory: &Memory) -> bool {
    let mut wanted = false;
    // What outlives instances first: for that the slots are needed as the dead left them. It is decided here, once: later a
    // slot tells nothing of the call before, for one that is made meanwhile and comes to no worker leaves its sequence there.
    let unpublished = |sequence: u64, place: u64| {
        let slot = memory.channels.get(place as usize / SLOTS).map(|channel| &channel.slots[place as usize % SLOTS]);
        // A state that there is none of is what somebody left who was harmed as he published, and has not.
        let published = |slot: &Slot| matches!(slot.state.load(SeqCst), DONE | IDLE | REQUEST);
        slot.is_some_and(|slot| slot.sequence.load(SeqCst) == sequence && !published(slot))
    };
    memory.registry.decide(unpublished);
    if let Err(error) = storage::apply(&memory.storage, &memory.recent, unpublished) {
        eprintln!("component: cannot write to its storage what its last calls changed: {error}");
    }
    memory.control.descriptors.store(0, SeqCst);
    memory.control.recovered.store(0, SeqCst);
    let epoch = memory.control.epoch.fetch_add(1, SeqCst) + 1;
    for channel in memory.channels.iter() {
        channel.epoch.store(epoch, SeqCst);
        for buffer in &channel.buffers {
            let _ = buffer.owner.compare_exchange(LENT, CLIENTS, SeqCst, Relaxed);
        }
        for slot in &channel.slots[..(channel.used.load(SeqCst) as usize).min(SLOTS)] {
            slot.worker.store(0, SeqCst);
            let state = slot.state.load(SeqCst);
            let next = match state {
                IDLE | DONE | FAULT | TORN => state,
                // T0: a thread that is blocked is woken if its stub asks for it.
                BLOCKED if slot.flags.load(Relaxed) & EAGER == 0 => BLOCKED,
                REQUEST | BLOCKED | WOKEN | UPCALL => FAULT,
                // It was being executed; or is in no state that there is, and nobody but who executed it can have left that.
                _ => TORN,
            };
            wanted |= next != state && next == TORN;
            let _ = slot.state.compare_exchange(state, next, SeqCst, SeqCst);
            if next != IDLE {
                // Also one that is done: the dead may not have come to wake its client.
                futex::wake(&slot.state);
            }
        }
        // A worker that waited for this client is no more.
        if channel.upcall.reset() {
            futex::wake(&channel.upcall.state);
        }
    }
    wanted
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::Arc;

    use super::super::instance::Memory;
    use super::begin_epoch;
    use crate::layout::{Control, CHANNELS, DONE, FAULT, IDLE, REQUEST, RUNNING, SLOTS, TORN, WOKEN};
    use crate::memory::Shared;
    use crate::registry::{Noted, Registry};
    use crate::storage::{self, Resources};

    /// A component's memory as its manager would have made it.
    pub fn memory() -> Memory {
        fn fresh<T>() -> Shared<T> {
            Shared::map(Shared::<T>::create(c"test").expect("memory").as_fd()).expect("a mapping")
        }
        let channels: Vec<Shared<crate::layout::ChannelMemory>> = (0..CHANNELS).map(|_| fresh()).collect();
        for channel in &channels {
            channel.used.store(2, SeqCst);
        }
        Memory {
            control: Arc::new(fresh::<Control>()),
            registry: Arc::new(fresh::<Registry>()),
            channels: Arc::new(channels),
            storage: storage::create().expect("a storage").into(),
            recent: Arc::new(fresh::<storage::Area>()),
            doorbell: -1,
            passages: Arc::default(),
        }
    }

    const CHANNEL: usize = 1;
    const SLOT: usize = 1;
    const PLACE: u64 = (CHANNEL * SLOTS + SLOT) as u64;
    const KEY: u64 = 7;

    /// A call that leaves a resource and a global descriptor behind, up to what precedes its reply.
    fn make(memory: &Memory) {
        let sequence = u64::from(memory.control.epoch.load(SeqCst)) << 32 | 1;
        let slot = &memory.channels[CHANNEL].slots[SLOT];
        slot.sequence.store(0, SeqCst);
        slot.state.store(RUNNING, SeqCst);
        slot.sequence.store(sequence, SeqCst);
        let mut resources = Resources::new(memory.storage.try_clone().expect("a descriptor"), memory.recent.clone());
        resources.load();
        resources.create(KEY, b"name").expect("room");
        resources.commit(sequence, PLACE);
        assert!(memory.registry.note(
            KEY,
            Some(Noted { client: CHANNEL as u32, state: 0, parent: 0 }),
            sequence,
            PLACE
        ));
    }

    fn state(memory: &Memory) -> &std::sync::atomic::AtomicU32 {
        &memory.channels[CHANNEL].slots[SLOT].state
    }

    /// Whether the call has happened, in the eyes of the next instance.
    fn happened(memory: &Memory) -> bool {
        let mut resources = Resources::new(memory.storage.try_clone().expect("a descriptor"), memory.recent.clone());
        resources.load();
        let kept = resources.length(KEY).is_ok();
        assert_eq!(memory.registry.find(KEY).is_some(), kept, "storage and registry agree");
        kept
    }

    #[test]
    fn a_call_without_a_reply_has_not_happened() {
        let memory = memory();
        begin_epoch(&memory);
        make(&memory);
        begin_epoch(&memory);
        assert!(!happened(&memory));
        assert_eq!(state(&memory).load(SeqCst), TORN);
    }

    #[test]
    fn a_call_whose_reply_went_astray_has_not_happened_and_is_known_to_be_torn() {
        // DONE written beside it, a bit of it that is another, and what is none at all.
        let beside = [8, 16, 24].map(|shift| RUNNING | (DONE << shift));
        for astray in beside.into_iter().chain([RUNNING ^ (1 << 4), RUNNING ^ (1 << 31), WOKEN + 1, u32::MAX]) {
            let memory = memory();
            begin_epoch(&memory);
            make(&memory);
            state(&memory).store(astray, SeqCst);
            assert!(begin_epoch(&memory));
            assert_eq!(state(&memory).load(SeqCst), TORN);
            assert!(!happened(&memory));
        }
    }

    #[test]
    fn a_call_with_a_reply_has_happened_whatever_dies_before_its_caller_makes_the_next() {
        let memory = memory();
        begin_epoch(&memory);
        make(&memory);
        state(&memory).store(DONE, SeqCst);
        // The caller has the reply and calls again, but no worker comes to it; nor does it come to see that.
        state(&memory).store(IDLE, SeqCst);
        state(&memory).store(REQUEST, SeqCst);
        for _ in 0..3 {
            begin_epoch(&memory);
            assert_eq!(state(&memory).load(SeqCst), FAULT);
            assert!(happened(&memory));
        }
        // The next is made again, and executed when the component dies once more: it says nothing of the one before.
        state(&memory).store(RUNNING, SeqCst);
        begin_epoch(&memory);
        assert!(happened(&memory));
    }
}
