//! A client that was born anew, a component's next instance above all, takes its channel over from the one that died.

use std::sync::atomic::Ordering::SeqCst;

use crate::channel::{Channel, Interrupted, Request};
use crate::error::CallError;
use crate::futex;
use crate::layout::{ABANDONED, CLIENT_SLEEPS, FORGET, FREE};

impl Channel {
    /// Returns when nothing that the dead called for can happen any more, and what was theirs is closed.
    pub(crate) fn take_over(&self) -> Result<(), CallError> {
        let memory = self.memory();
        memory.upcall.listening.store(0, SeqCst);
        // Who waits for the dead to answer waits no more.
        futex::wake(&memory.upcall.state);
        for slot in &memory.slots {
            if slot.owner.load(SeqCst) != 0 {
                slot.owner.store(ABANDONED, SeqCst);
                slot.sleepers.fetch_and(!CLIENT_SLEEPS, SeqCst);
            }
        }
        loop {
            match self.call(&Request { operation: FORGET, epoch: self.epoch(), ..Request::default() }) {
                // One that is given up has nothing of anybody's, and says so to whoever calls it.
                Ok(_) | Err(Interrupted::Failed(CallError::GivenUp)) => break,
                Err(Interrupted::Fault { .. }) => {}
                Err(Interrupted::Failed(error)) => return Err(error),
            }
        }
        // Now no call has one any more.
        memory.buffers.iter().for_each(|buffer| buffer.owner.store(FREE, SeqCst));
        Ok(())
    }
}
