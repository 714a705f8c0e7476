//! The client's end of a channel.

mod held;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;

use crate::error::CallError;
use crate::layout::{
    ChannelMemory, Slot, BLOCKED, CLIENT_SLEEPS, DATA, DONE, FAULT, IDLE, REQUEST, REVOKE, SLOTS, STATE, TORN, WORDS,
    WORKER_SLEEPS,
};
use crate::mapping::Mappings;
use crate::memory::Shared;
use crate::passage::Passage;
use crate::{futex, processor};

/// A connection to a component; clones are the same one. What a client can reach is what it was granted channels to.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Inner>,
}

struct Inner {
    number: u64,
    memory: Shared<ChannelMemory>,
    doorbell: OwnedFd,
    passage: Passage,
    mappings: Mappings,
    /// Turns of spinning before a thread sleeps.
    spin: AtomicU32,
}

/// A call to be made.
#[derive(Default)]
pub struct Request<'a> {
    pub operation: u32,
    pub flags: u32,
    /// The epoch in which the descriptors in it are valid.
    pub epoch: u32,
    pub wanted: u64,
    pub words: &'a [u64],
    pub bytes: &'a [u8],
    /// An open file that comes with it.
    pub file: Option<BorrowedFd<'a>>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub words: [u64; WORDS],
    pub bytes: Vec<u8>,
    pub file: Option<Arc<OwnedFd>>,
    /// The call's place in the order of effects, over all epochs.
    pub sequence: u64,
    /// Whether the call moved its descriptor to the operation's state.
    pub tracked: bool,
    pub epoch: u32,
}

#[derive(Debug)]
pub enum Interrupted {
    /// The server died: nothing of the call has happened. `torn`: while it was being executed.
    Fault {
        torn: bool,
    },
    Failed(CallError),
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Channel {
    pub(crate) fn open(memory: OwnedFd, doorbell: OwnedFd, socket: OwnedFd) -> io::Result<Self> {
        use std::os::fd::AsFd;
        let memory = Shared::map(memory.as_fd())?;
        let number = NUMBERS.fetch_add(1, Relaxed);
        let (passage, mappings, spin) = (Passage::new(socket), Mappings::default(), AtomicU32::new(0));
        let channel = Self { shared: Arc::new(Inner { number, memory, doorbell, passage, mappings, spin }) };
        if channel.memory().opened.swap(1, SeqCst) != 0 {
            channel.take_over().map_err(io::Error::other)?;
        }
        Ok(channel)
    }

    /// How long a thread looks for the reply before it sleeps; a turn is some 20 ns. It does not at first (0): its calls are served on its
    /// own processor. With any other number they are served wherever there is room, which is worth it between processors only.
    pub fn spin(&self, turns: u32) {
        self.shared.spin.store(turns, Relaxed);
    }

    /// The fault counter: how often the component was started.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.shared.memory.epoch.load(Acquire)
    }

    /// Whether some thread of this client made its last call in that epoch: only such a one can have a reply from there in its hands.
    pub(crate) fn used_in(&self, epoch: u32) -> bool {
        let used = (self.memory().used.load(Acquire) as usize).min(SLOTS);
        self.memory().slots[..used].iter().any(|slot| slot.epoch.load(Relaxed) == epoch)
    }

    /// How many threads of this client the component has wait for others.
    pub fn waiting(&self) -> usize {
        self.memory().slots.iter().filter(|slot| slot.state.load(Relaxed) == BLOCKED).count()
    }

    pub(crate) fn memory(&self) -> &ChannelMemory {
        &self.shared.memory
    }

    /// What this client has mapped of a memory manager's.
    pub fn mappings(&self) -> &Mappings {
        &self.shared.mappings
    }

    pub fn call(&self, request: &Request<'_>) -> Result<Reply, Interrupted> {
        if request.words.len() > WORDS || request.bytes.len() > DATA {
            return Err(Interrupted::Failed(CallError::TooLong(DATA)));
        }
        let at = self.slot().map_err(Interrupted::Failed)?;
        let memory = self.memory();
        let slot = &memory.slots[at];
        slot.epoch.store(request.epoch, Relaxed);
        slot.operation.store(request.operation, Relaxed);
        slot.flags.store(request.flags, Relaxed);
        slot.wanted.store(request.wanted, Relaxed);
        slot.count.store(request.words.len() as u32, Relaxed);
        for (to, from) in slot.words.iter().zip(request.words) {
            to.store(*from, Relaxed);
        }
        slot.length.store(request.bytes.len() as u32, Relaxed);
        if !request.bytes.is_empty() {
            memory.data[at].write(request.bytes);
        }
        let token = request.file.map_or(0, |_| NUMBERS.fetch_add(1, Relaxed));
        slot.file.store(token, Relaxed);
        if let Some(file) = request.file {
            // Full of what the component does not take: as if it did not answer.
            if self.shared.passage.send(at, token, file).is_err() {
                return Err(Interrupted::Failed(CallError::TooLong(0)));
            }
        }
        slot.number.fetch_add(1, Relaxed);
        let spins = self.shared.spin.load(Relaxed) != 0;
        slot.processor.store(if spins { 0 } else { processor::here() }, Relaxed);
        slot.state.swap(REQUEST, SeqCst);
        if slot.sleepers.load(SeqCst) & WORKER_SLEEPS != 0 {
            futex::wake(&slot.state);
        }
        if slot.worker.load(SeqCst) == 0 {
            self.ring(slot);
        }
        let state = self.settled(slot);
        let outcome = match state {
            DONE => self.reply(at, request.epoch),
            state => Err(Interrupted::Fault { torn: state == TORN }),
        };
        slot.state.store(IDLE, Release);
        if outcome.is_err() && memory.given_up.load(Acquire) != 0 {
            return Err(Interrupted::Failed(CallError::GivenUp));
        }
        outcome
    }

    /// Has the boot thread of the instance look for slots without a worker.
    fn ring(&self, slot: &Slot) {
        if slot.worker.swap(1, SeqCst) == 0 {
            let one = 1u64.to_ne_bytes();
            // SAFETY: writes eight bytes of a live array to an eventfd that is ours.
            unsafe { libc::write(self.shared.doorbell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }

    /// Waits until the call is over one way or the other.
    fn settled(&self, slot: &Slot) -> u32 {
        let over = |state: u32| matches!(state, DONE | FAULT | TORN);
        for _ in 0..self.shared.spin.load(Relaxed) {
            let state = slot.state.load(Acquire);
            if over(state) {
                return state;
            }
            std::hint::spin_loop();
        }
        slot.sleepers.fetch_or(CLIENT_SLEEPS, SeqCst);
        let state = loop {
            let state = slot.state.load(SeqCst);
            if over(state) {
                break state;
            }
            if state == REQUEST && slot.worker.load(SeqCst) == 0 {
                // The template reset it between our request and our look at it.
                self.ring(slot);
            }
            if self.memory().given_up.load(SeqCst) != 0 {
                break FAULT;
            }
            futex::wait(&slot.state, state, None);
        };
        slot.sleepers.fetch_and(!CLIENT_SLEEPS, SeqCst);
        state
    }

    fn reply(&self, at: usize, epoch: u32) -> Result<Reply, Interrupted> {
        let slot = &self.memory().slots[at];
        let status = slot.status.load(Relaxed);
        let sequence = slot.sequence.load(Relaxed);
        match status {
            0 => {}
            status if status > 0 => return Err(Interrupted::Failed(CallError::Service(status))),
            refused => return Err(Interrupted::Failed(CallError::Refused(refused.wrapping_neg()))),
        }
        let mut words = [0; WORDS];
        for (to, from) in words.iter_mut().zip(&slot.answers) {
            *to = from.load(Relaxed);
        }
        let length = slot.answer_length.load(Relaxed) as usize;
        // A length that no honest server sends is a server gone mad: its word is not taken, and its end is near.
        let bytes = match length {
            0 => Vec::new(),
            length => self.memory().data[at].read(length).ok_or(Interrupted::Failed(CallError::TooLong(DATA)))?,
        };
        let file = match slot.answer_file.load(Relaxed) {
            0 => None,
            token => self.shared.passage.take(at, token).map(Arc::new),
        };
        Ok(Reply { words, bytes, file, sequence, tracked: slot.tracked.load(Relaxed) != 0, epoch })
    }

    /// U0: has `recover` called, in a thread of its own, when the component needs a descriptor that this client created; and
    /// lets go of memory that is revoked.
    /// Ends when nothing else holds what `recover` points to weakly: it then returns None.
    pub fn listen(&self, recover: impl Fn(u64) -> Option<bool> + Send + 'static) {
        let channel = self.clone();
        // Before the thread has begun: what is asked until then, it will find.
        channel.memory().upcall.listening.store(1, SeqCst);
        std::thread::spawn(move || {
            let upcall = &channel.memory().upcall;
            loop {
                let state = upcall.state.load(SeqCst);
                if state & STATE == REQUEST {
                    let descriptor = upcall.descriptor.load(Relaxed);
                    let done = match upcall.kind.load(Relaxed) {
                        REVOKE => {
                            channel.mappings().revoke(descriptor);
                            Some(true)
                        }
                        _ => recover(descriptor),
                    };
                    let Some(done) = done else { break };
                    let answer = if done { DONE } else { FAULT };
                    // Not if the component has died meanwhile: then nobody waits for this answer.
                    let _ = upcall.state.compare_exchange(state, state & !STATE | answer, SeqCst, Relaxed);
                    futex::wake(&upcall.state);
                } else {
                    futex::wait(&upcall.state, state, None);
                }
            }
            upcall.listening.store(0, SeqCst);
        });
    }
}
