//! Which slots of channels a thread has.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::Channel;
use crate::error::CallError;
use crate::layout::{ABANDONED, DONE, FAULT, IDLE, SLOTS, TORN};

impl Channel {
    /// This thread's slot, from its first call until its end.
    pub(super) fn slot(&self) -> Result<usize, CallError> {
        MINE.with_borrow_mut(|mine| {
            if let Some(held) = mine.held.iter().find(|held| held.channel.shared.number == self.shared.number) {
                return Ok(held.slot);
            }
            let memory = self.memory();
            // SAFETY: asks for a number.
            let me = unsafe { libc::gettid() } as u32;
            let free = (0..SLOTS).find(|&at| {
                let slot = &memory.slots[at];
                let over = || matches!(slot.state.load(SeqCst), IDLE | DONE | FAULT | TORN);
                // One whose last owner died in a call is left alone until the call is over.
                let own = slot.owner.compare_exchange(0, me, SeqCst, Relaxed).is_ok();
                if own && !over() {
                    slot.owner.store(0, Release);
                    return false;
                }
                // An abandoned call must be known as such until then.
                own || over() && slot.owner.compare_exchange(ABANDONED, me, SeqCst, Relaxed).is_ok()
            });
            let slot = free.ok_or(CallError::NoSlot)?;
            memory.used.fetch_max(slot as u32 + 1, SeqCst);
            mine.held.push(Held { channel: self.clone(), slot });
            Ok(slot)
        })
    }
}

/// Slots of a thread; given back at its end.
#[derive(Default)]
struct Mine {
    held: Vec<Held>,
}

struct Held {
    channel: Channel,
    slot: usize,
}

impl Drop for Mine {
    fn drop(&mut self) {
        for held in &self.held {
            held.channel.memory().slots[held.slot].owner.store(0, Release);
        }
    }
}

thread_local! {
    static MINE: RefCell<Mine> = RefCell::default();
}
