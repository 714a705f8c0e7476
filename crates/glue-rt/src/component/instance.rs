//! The process that serves: a boot thread, which never runs service code, and a worker for each thread that calls.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::futex;
use crate::layout::{
    ChannelMemory, Control, Slot, CHANNELS, CLIENT_SLEEPS, DATA, DONE, FAULT, FORGET, RECOVER, RECOVERED, REQUEST,
    REVOKE, RUNNING, SLOTS, STATE, UPCALL, WORDS, WORKER_SLEEPS,
};
use crate::memory::Shared;
use crate::passage::Passage;
use crate::processor::Place;
use crate::registry::Registry;
use crate::storage::{self, Resources};

use super::call::Incoming;
use super::monitor::{Monitor, Outcome};
use super::{Component, Operation};

/// What the template hands to its instances: mapped once, inherited by every fork.
pub struct Memory {
    pub control: Arc<Shared<Control>>,
    pub registry: Arc<Shared<Registry>>,
    pub channels: Arc<Vec<Shared<ChannelMemory>>>,
    pub passages: Arc<Vec<Passage>>,
    pub storage: std::fs::File,
    /// What is not yet in the storage's table.
    pub recent: Arc<Shared<storage::Area>>,
    pub doorbell: i32,
}

/// How long a client may take to recover a descriptor that others need.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a client did of what it was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Done,
    /// It cannot, or is too slow.
    Refused,
    /// It is no more.
    Gone,
}

/// A stack for service code; untouched pages cost nothing.
const STACK: usize = 256 * 1024;

struct Shop<C> {
    monitor: Monitor<C>,
    operations: &'static [Operation],
    channels: Arc<Vec<Shared<ChannelMemory>>>,
    passages: Arc<Vec<Passage>>,
    /// One upcall at a time to each client.
    upcalls: [Mutex<()>; CHANNELS],
}

/// Never returns: the process serves until it is killed.
pub fn serve<C: Component>(mut component: C, memory: &Memory, started: impl FnOnce()) -> ! {
    reserve_files(memory.doorbell);
    if let Err(error) = component.born() {
        eprintln!("component: cannot begin: {error}");
        std::process::exit(1);
    }
    let epoch = memory.control.epoch.load(Acquire);
    let operations = component.operations();
    let storage = memory.storage.try_clone().expect("a descriptor for the storage");
    let monitor = Monitor::new(component, Resources::new(storage, memory.recent.clone()), memory, epoch);
    let shop = Arc::new(Shop {
        monitor,
        operations,
        channels: memory.channels.clone(),
        passages: memory.passages.clone(),
        upcalls: std::array::from_fn(|_| Mutex::new(())),
    });
    let mut staffed = vec![false; CHANNELS * SLOTS];
    started();
    loop {
        for (at, channel) in shop.channels.iter().enumerate() {
            for slot in 0..(channel.used.load(Acquire) as usize).min(SLOTS) {
                let place = at * SLOTS + slot;
                if !staffed[place] && channel.slots[slot].worker.load(SeqCst) == 1 {
                    staffed[place] = hire(&shop, at, slot);
                }
            }
        }
        if !rings(memory.doorbell) {
            shop.monitor.look_again();
        }
    }
}

/// How long nobody rings before those that wait look for themselves, in milliseconds.
const LOST: libc::c_int = 1_000;

/// Waits for a ring. False: there was none for long.
fn rings(doorbell: i32) -> bool {
    let mut poll = libc::pollfd { fd: doorbell, events: libc::POLLIN, revents: 0 };
    let mut count = [0u8; 8];
    // SAFETY: one live entry; reads eight bytes into a live array from an eventfd that the template holds.
    unsafe {
        libc::poll(&mut poll, 1, LOST) == 1
            && libc::read(doorbell, count.as_mut_ptr().cast(), count.len()) == count.len() as isize
    }
}

/// Open files that an instance may have before its table of them grows, if its limit is not lower.
const FILES: i32 = 1024;

/// Makes that table so large while there is one thread: where threads share it, the kernel waits for a grace period at each growth,
/// some milliseconds.
fn reserve_files(any: i32) {
    // SAFETY: plain calls; what is closed is the duplicate that was just made.
    unsafe {
        let highest = libc::fcntl(any, libc::F_DUPFD_CLOEXEC, FILES - 1);
        if highest >= 0 {
            libc::close(highest);
        }
    }
}

/// False: no thread could be had now; the next ring of the bell tries again.
fn hire<C: Component>(shop: &Arc<Shop<C>>, channel: usize, slot: usize) -> bool {
    let shop = shop.clone();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut place = Place::default();
        loop {
            let memory = &shop.channels[channel];
            await_request(&memory.slots[slot]);
            place.follow(memory.slots[slot].processor.load(Relaxed));
            shop.work(channel, slot);
        }
    });
    worker.is_ok()
}

fn await_request(slot: &Slot) {
    for _ in 0..100 {
        if slot.state.load(Acquire) == REQUEST {
            return;
        }
        std::hint::spin_loop();
    }
    slot.sleepers.fetch_or(WORKER_SLEEPS, SeqCst);
    loop {
        let state = slot.state.load(SeqCst);
        if state == REQUEST {
            break;
        }
        futex::wait(&slot.state, state, None);
    }
    slot.sleepers.fetch_and(!WORKER_SLEEPS, SeqCst);
}

impl<C: Component> Shop<C> {
    fn work(&self, channel: usize, at: usize) {
        let memory = &self.channels[channel];
        let slot = &memory.slots[at];
        slot.sequence.store(0, SeqCst);
        slot.state.store(RUNNING, SeqCst);
        if slot.epoch.load(Relaxed) != self.monitor.epoch {
            // Its descriptors are those of a dead instance: the stub recovers them and calls again.
            slot.state.swap(FAULT, SeqCst);
            return wake(slot);
        }
        if slot.operation.load(Relaxed) == RECOVERED {
            self.monitor.recovered(slot.wanted.load(Relaxed), channel as u32, slot);
            return wake(slot);
        }
        let place = (channel * SLOTS + at) as u64;
        if slot.operation.load(Relaxed) == FORGET {
            self.monitor.forget(channel as u32, slot, place);
            return wake(slot);
        }
        // Twice, as all errors are looked at.
        let Some(mut incoming) = self.read(channel, at).or_else(|| self.read(channel, at)) else {
            self.monitor.publish(slot, -libc::EINVAL);
            return wake(slot);
        };
        let mut again = false;
        loop {
            match self.monitor.serve(&incoming, slot, &memory.data[at], &self.passages[channel], place, again) {
                Outcome::Published => return,
                Outcome::Doubtful => {
                    again = true;
                    // A file that came with it comes once.
                    if let Some(fresh) = self.read(channel, at) {
                        let Incoming { lost, released, .. } = incoming;
                        incoming = Incoming { lost, released, ..fresh };
                    }
                }
                Outcome::Recover { descriptor, client } => {
                    slot.state.store(UPCALL, SeqCst);
                    let answer = self.upcall(client as usize, descriptor, RECOVER);
                    slot.state.store(RUNNING, SeqCst);
                    if answer != Answer::Done {
                        incoming.lost.push(descriptor);
                    }
                }
                Outcome::Release { descriptor, client } => {
                    slot.state.store(UPCALL, SeqCst);
                    let answer = self.upcall(client as usize, descriptor, REVOKE);
                    slot.state.store(RUNNING, SeqCst);
                    if answer == Answer::Refused && !std::mem::replace(&mut again, true) {
                        continue;
                    }
                    if answer == Answer::Refused {
                        self.monitor.publish(slot, -libc::EBUSY);
                        return wake(slot);
                    }
                    incoming.released.push((client, descriptor));
                }
            }
        }
    }

    /// The request, each word read once; None if it is malformed.
    fn read(&self, channel: usize, at: usize) -> Option<Incoming> {
        let memory = &self.channels[channel];
        let slot = &memory.slots[at];
        let operation = slot.operation.load(Relaxed);
        let expected = self.operations.get(operation as usize)?;
        let (count, length) = (slot.count.load(Relaxed), slot.length.load(Relaxed) as usize);
        if count != expected.words || count as usize > WORDS || length > DATA || (length > 0 && !expected.bytes) {
            return None;
        }
        let mut words = [0; WORDS];
        for (to, from) in words.iter_mut().zip(&slot.words).take(count as usize) {
            *to = from.load(Relaxed);
        }
        let bytes = if length == 0 { Vec::new() } else { memory.data[at].read(length)? };
        let file = match slot.file.load(Relaxed) {
            0 => None,
            token if expected.file => Some(self.passages.get(channel)?.take(at, token)?),
            _ => return None,
        };
        let (flags, wanted) = (slot.flags.load(Relaxed), slot.wanted.load(Relaxed));
        let (lost, released) = (Vec::new(), Vec::new());
        Some(Incoming { client: channel as u32, operation, flags, wanted, words, bytes, file, lost, released })
    }

    /// U0, this side: asks a client to recover a descriptor, or to let go of it.
    fn upcall(&self, client: usize, descriptor: u64, kind: u32) -> Answer {
        let (Some(memory), Some(turn)) = (self.channels.get(client), self.upcalls.get(client)) else {
            return Answer::Gone;
        };
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let upcall = &memory.upcall;
        let gone = || upcall.listening.load(SeqCst) == 0 || self.passages[client].abandoned();
        if gone() {
            return Answer::Gone;
        }
        upcall.descriptor.store(descriptor, Relaxed);
        upcall.kind.store(kind, Relaxed);
        let request = upcall.next();
        upcall.state.swap(request, SeqCst);
        futex::wake(&upcall.state);
        let patience = Instant::now() + PATIENCE;
        let answer = loop {
            let word = upcall.state.load(SeqCst);
            match word & STATE {
                DONE => break Answer::Done,
                FAULT => break Answer::Refused,
                _ if gone() => break Answer::Gone,
                _ if Instant::now() < patience => futex::wait(&upcall.state, word, Some(PATIENCE / 100)),
                _ => break Answer::Refused,
            }
        };
        upcall.reset();
        answer
    }
}

fn wake(slot: &Slot) {
    if slot.sleepers.load(SeqCst) & CLIENT_SLEEPS != 0 {
        futex::wake(&slot.state);
    }
}
