//! What lies in shared memory, and who writes it. Atomics only: the other side may be corrupt or hostile.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::memory::Bytes;

/// Clients of a component.
pub const CHANNELS: usize = 16;
/// Threads of a client that can be in a call at once.
pub const SLOTS: usize = 64;
/// Words of a call, each way.
pub const WORDS: usize = 8;
/// Bytes that come with a call, each way.
pub const DATA: usize = 4096;
/// Shared buffers of a channel, for what is more.
pub const BUFFERS: usize = 64;
pub const BUFFER: usize = 65536;

/// States of a slot. The client moves it from IDLE to REQUEST and from DONE, FAULT and TORN to IDLE; the worker the rest of
/// the way; the template, when the instance is dead, whatever is under way to FAULT or TORN.
pub const IDLE: u32 = 0;
pub const REQUEST: u32 = 1;
/// A worker executes the call, or waits for the monitor to.
pub const RUNNING: u32 = 2;
/// The service has the thread wait for another.
pub const BLOCKED: u32 = 3;
/// The worker waits for a client to recover a descriptor.
pub const UPCALL: u32 = 4;
pub const DONE: u32 = 5;
/// The server died and the call had not been begun, or waited.
pub const FAULT: u32 = 6;
/// The server died while it executed the call.
pub const TORN: u32 = 7;

/// It waited, and has been woken: it is to go on.
pub const WOKEN: u32 = 8;

/// Flags of a request. EAGER is T0: wake this thread if the server dies while the thread is blocked there.
pub const EAGER: u32 = 1;
/// R0 walks: do not wait where the call would block.
pub const TRY: u32 = 2;
/// R0 creates again: `wanted` is the id that a global descriptor had.
pub const RECREATE: u32 = 4;

/// The operation of every interface with global descriptors: `wanted` has been recovered, others may use it.
pub const RECOVERED: u32 = u32::MAX;
/// The operation of every interface: the client is born anew, and nobody has what it had.
pub const FORGET: u32 = u32::MAX - 1;
/// In place of a slot's owner: it died with its process, and whatever it called for is not to be done.
pub const ABANDONED: u32 = u32::MAX;

/// What an upcall asks of a client: to recover the descriptor, or to let go of what it has of it.
pub const RECOVER: u32 = 0;
pub const REVOKE: u32 = 1;

/// Who sleeps on the slot's word.
pub const CLIENT_SLEEPS: u32 = 1;
pub const WORKER_SLEEPS: u32 = 2;

#[repr(C, align(64))]
pub struct Slot {
    pub state: AtomicU32,
    /// Client: the thread that has it, 0 none; or ABANDONED.
    pub owner: AtomicU32,
    /// 1: a worker is there or has been asked for. Set by the client, reset by the template.
    pub worker: AtomicU32,
    pub sleepers: AtomicU32,
    // The request, written by the client before REQUEST.
    pub epoch: AtomicU32,
    pub operation: AtomicU32,
    pub flags: AtomicU32,
    pub count: AtomicU32,
    pub wanted: AtomicU64,
    pub words: [AtomicU64; WORDS],
    pub length: AtomicU32,
    /// Another one with each call.
    pub number: AtomicU32,
    /// Where the client runs, from 1; 0: it looks for the reply from there, so that the worker has to run elsewhere.
    pub processor: AtomicU32,
    /// The token of the file that comes with the call; 0: none does.
    pub file: AtomicU64,
    /// While BLOCKED: when it is to go on at the latest, in nanoseconds of CLOCK_MONOTONIC; 0: when it is woken.
    pub deadline: AtomicU64,
    // The reply, written by the worker before DONE.
    pub status: AtomicI32,
    /// In the high half the epoch, in the low one the call's number in the order of effects.
    pub sequence: AtomicU64,
    pub tracked: AtomicU32,
    pub answer_length: AtomicU32,
    /// The token of the file that comes back; 0: none does.
    pub answer_file: AtomicU64,
    pub answers: [AtomicU64; WORDS],
}

/// Whose a shared buffer is.
pub const FREE: u32 = 0;
pub const CLIENTS: u32 = 1;
/// The client's, but in a call's hands.
pub const LENT: u32 = 2;

#[repr(C)]
pub struct Buffer {
    pub owner: AtomicU32,
}

#[repr(C, align(64))]
pub struct Upcall {
    /// IDLE, REQUEST (by a worker), DONE or FAULT (by the client: it did, or did not); above `STATE` the number of the request,
    /// so that no answer is taken for one to another.
    pub state: AtomicU32,
    pub descriptor: AtomicU64,
    /// RECOVER or REVOKE.
    pub kind: AtomicU32,
    /// 1 while a client listens.
    pub listening: AtomicU32,
}

/// The part of an upcall's word that is its state; the rest is the request's number.
pub const STATE: u32 = 7;

impl Upcall {
    /// The word of the next request.
    pub fn next(&self) -> u32 {
        (self.state.load(Relaxed) | STATE).wrapping_add(1) | REQUEST
    }

    /// Nothing is asked any more. Returns whether something was.
    pub fn reset(&self) -> bool {
        self.state.fetch_and(!STATE, SeqCst) & STATE != IDLE
    }
}

/// Memory of one client and one component.
#[repr(C, align(4096))]
pub struct ChannelMemory {
    /// How often the component has been micro-rebooted, plus one: the fault counter. Written by the template.
    pub epoch: AtomicU32,
    /// 1: no instance will come any more.
    pub given_up: AtomicU32,
    /// How many slots have ever been in use.
    pub used: AtomicU32,
    /// 1: a client has it, or had.
    pub opened: AtomicU32,
    pub upcall: Upcall,
    pub slots: [Slot; SLOTS],
    pub buffers: [Buffer; BUFFERS],
    pub data: [Bytes<DATA>; SLOTS],
    pub contents: [Bytes<BUFFER>; BUFFERS],
}

/// Memory of the manager, the template and its instances.
#[repr(C, align(4096))]
pub struct Control {
    pub epoch: AtomicU32,
    pub template: AtomicU32,
    pub instance: AtomicU32,
    pub given_up: AtomicU32,
    /// Instances that died, of whatever, and those of them that were ended because they hung.
    pub deaths: AtomicU32,
    pub hangs: AtomicU32,
    /// 1: the instance takes calls.
    pub started: AtomicU32,
    /// How many descriptors it knows.
    pub descriptors: AtomicU32,
    /// So many of them were created again by the stubs of clients that had them.
    pub recovered: AtomicU32,
    /// What the manager's keeper has decided (`keeping/line.rs`).
    pub verdict: AtomicU32,
    /// Calls completed by the instance.
    pub completed: AtomicU64,
    /// From the template's noticing the death until the next instance took calls.
    pub reboot_nanoseconds: AtomicU64,
    /// CLOCK_MONOTONIC of the last notice.
    pub noticed: AtomicU64,
}

/// Bytes that come with a slot's calls.
pub type DataArea = Bytes<DATA>;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use super::{Upcall, DONE, IDLE, RECOVER, REQUEST, STATE};

    #[test]
    fn an_answer_to_a_request_of_a_dead_instance_is_none_to_the_next() {
        let (state, descriptor) = (AtomicU32::new(IDLE), AtomicU64::new(0));
        let upcall = Upcall { state, descriptor, kind: AtomicU32::new(RECOVER), listening: AtomicU32::new(1) };
        let ask = || {
            let word = upcall.next();
            assert_eq!(word & STATE, REQUEST);
            upcall.state.store(word, SeqCst);
            word
        };
        let answer = |word: u32| upcall.state.compare_exchange(word, word & !STATE | DONE, SeqCst, SeqCst).is_ok();
        let first = ask();
        assert!(upcall.reset() && !upcall.reset());
        assert!(!answer(first));
        let second = ask();
        assert!(!answer(first) && answer(second));
        assert_eq!(upcall.state.load(SeqCst) & STATE, DONE);
    }
}
