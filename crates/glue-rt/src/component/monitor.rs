//! The lock under which the service runs, and where threads wait for each other.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::layout::{
    ChannelMemory, Control, Slot, ABANDONED, BLOCKED, CLIENT_SLEEPS, DONE, RUNNING, SLOTS, TRY, WOKEN,
};
use crate::memory::Shared;
use crate::passage::Passage;
use crate::registry::Registry;
use crate::sound::sound;
use crate::storage::Resources;
use crate::{clock, futex, layout};

use super::call::{Call, Incoming, Knowns, Stop};
use super::change::Change;
use super::instance::Memory;
use super::kin::Kin;
use super::{Component, Point};

pub struct Monitor<C> {
    pub(super) inside: Mutex<Inside<C>>,
    pub registry: Arc<Shared<Registry>>,
    pub control: Arc<Shared<Control>>,
    pub(super) channels: Arc<Vec<Shared<ChannelMemory>>>,
    pub(super) global: bool,
    pub epoch: u32,
}

pub(super) struct Inside<C> {
    pub component: C,
    pub knowns: Knowns,
    pub resources: Resources,
    pub kin: Kin,
    /// Calls done, in the order of their effects.
    pub count: u32,
    pub waiters: HashMap<u64, Vec<Waiter>>,
}

/// A thread that waits, and the place of its call.
pub(super) struct Waiter {
    condition: Arc<Condvar>,
    pub place: u64,
}

/// What is left to do outside the monitor.
pub enum Outcome {
    Published,
    /// An error, which has no effect: it is looked at twice, from the request on, for one that comes of a harmed register does not come
    /// again.
    Doubtful,
    /// G0: have this descriptor recovered by that client, then dispatch again.
    Recover {
        descriptor: u64,
        client: u32,
    },
    /// Have that client let go of the descriptor, then dispatch again.
    Release {
        descriptor: u64,
        client: u32,
    },
}

impl<C: Component> Monitor<C> {
    pub fn new(component: C, resources: Resources, memory: &Memory, epoch: u32) -> Self {
        let global = component.is_global();
        let inside = Inside {
            component,
            knowns: Knowns::default(),
            resources,
            kin: Kin::default(),
            count: 0,
            waiters: HashMap::new(),
        };
        let (registry, control) = (memory.registry.clone(), memory.control.clone());
        Self { inside: Mutex::new(inside), registry, control, channels: memory.channels.clone(), global, epoch }
    }

    pub(super) fn enter(&self) -> MutexGuard<'_, Inside<C>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a call up to its reply, which is published before the monitor is left. `place` is where it was made. `again`: it was
    /// doubtful.
    pub fn serve(
        &self,
        incoming: &Incoming,
        slot: &Slot,
        bytes: &layout::DataArea,
        passage: &Passage,
        place: u64,
        again: bool,
    ) -> Outcome {
        let mut condition: Option<Arc<Condvar>> = None;
        let mut guard = self.enter();
        loop {
            let inside = &mut *guard;
            if slot.owner.load(SeqCst) == ABANDONED {
                self.publish(slot, -libc::ECANCELED);
                break;
            }
            let mut call = Call::new(
                incoming,
                &inside.knowns,
                &self.registry,
                &mut inside.kin,
                &mut inside.resources,
                &self.channels[place as usize / SLOTS],
                self.global,
            );
            if !again {
                inside.component.reached(Point::Begun, incoming.operation);
            }
            let outcome = inside.component.dispatch(&mut call);
            let (keeps, waits_for) = (call.keeps, call.waits_for);
            let Call { answers, answer_bytes, answer_file, changes, wakes, .. } = call;
            if outcome.is_err() {
                inside.resources.rollback();
            }
            match outcome {
                Err(Stop::Errno(_) | Stop::Refused(_)) if !again => return Outcome::Doubtful,
                Ok(()) => {
                    inside.component.reached(Point::Done, incoming.operation);
                    inside.count += 1;
                    let sequence = u64::from(self.epoch) << 32 | u64::from(inside.count);
                    let recreated = incoming.flags & layout::RECREATE != 0;
                    slot.sequence.store(sequence, SeqCst);
                    match keeps {
                        true => inside.resources.commit(sequence, place),
                        false => inside.resources.settle(),
                    }
                    let mut status = 0;
                    for change in &changes {
                        let gone = match change {
                            Change::Closed { id, subtree: true } => inside.kin.below(&self.registry, *id),
                            _ => Vec::new(),
                        };
                        if self.global {
                            match change.record(&self.registry, incoming.client, recreated, sequence, place) {
                                true => change.kin(&mut inside.kin),
                                false => status = -libc::ENOSPC,
                            }
                        }
                        for id in gone {
                            inside.knowns.remove(&id);
                        }
                        change.apply(&mut inside.knowns, incoming.client, recreated && self.global);
                        if recreated && matches!(change, Change::Created { .. }) {
                            self.control.recovered.fetch_add(1, Relaxed);
                        }
                        self.control.descriptors.store(inside.knowns.len() as u32, Relaxed);
                    }
                    let token = if answer_file.is_some() { sequence } else { 0 };
                    if let Some(file) = answer_file {
                        let sent = sound(passage.send(place as usize % SLOTS, token, file.as_fd()));
                        status = if sent.is_ok() { status } else { -libc::EMFILE };
                    }
                    slot.answer_file.store(token, Relaxed);
                    for (to, word) in slot.answers.iter().zip(answers) {
                        to.store(word, Relaxed);
                    }
                    let fits = answer_bytes.is_empty() || bytes.write(&answer_bytes);
                    if !fits {
                        let is_sound = answer_bytes.len() > layout::DATA;
                        assert!(is_sound, "an answer that has room does not fit: this process is harmed");
                        status = -libc::EMSGSIZE;
                    }
                    slot.answer_length.store(if fits { answer_bytes.len() as u32 } else { 0 }, Relaxed);
                    slot.tracked.store(u32::from(!changes.is_empty()), Relaxed);
                    for id in wakes {
                        inside.waiters.remove(&id).unwrap_or_default().iter().for_each(|waiter| self.wake(waiter));
                    }
                    inside.component.reached(Point::Committed, incoming.operation);
                    self.publish(slot, status);
                    inside.component.reached(Point::Published, incoming.operation);
                    break;
                }
                Err(Stop::Wait { .. }) if incoming.flags & TRY != 0 => {
                    self.publish(slot, libc::EAGAIN);
                    break;
                }
                Err(Stop::Wait { until }) => {
                    let id = waits_for;
                    let condition = condition.get_or_insert_with(Arc::default).clone();
                    inside.waiters.entry(id).or_default().push(Waiter { condition: condition.clone(), place });
                    slot.deadline.store(until.map_or(0, deadline), Relaxed);
                    slot.state.store(BLOCKED, SeqCst);
                    guard = wait(guard, &condition, until);
                    slot.state.store(RUNNING, SeqCst);
                    if let Some(waiters) = guard.waiters.get_mut(&id) {
                        waiters.retain(|waiter| !Arc::ptr_eq(&waiter.condition, &condition));
                    }
                }
                Err(Stop::Errno(errno)) => {
                    self.publish(slot, errno.abs().max(1));
                    break;
                }
                Err(Stop::Refused(errno)) => {
                    self.publish(slot, -errno.abs().max(1));
                    break;
                }
                Err(Stop::Holds { client, descriptor }) => return Outcome::Release { descriptor, client },
                Err(Stop::Unknown(descriptor)) => {
                    // From the top: so nobody who recovers one needs another client to recover its parent, which might just
                    // be waiting for this one.
                    let known = |id: &u64| inside.knowns.get(id).is_some_and(|known| !known.recovering);
                    let way = self.registry.way_up(descriptor).into_iter().rev();
                    let top = way.into_iter().find(|id| !known(id)).unwrap_or(descriptor);
                    match self.registry.find(top) {
                        Some(_) if incoming.lost.contains(&top) => self.publish(slot, -libc::EOWNERDEAD),
                        Some(noted) => return Outcome::Recover { descriptor: top, client: noted.client },
                        None => self.publish(slot, -libc::EBADF),
                    }
                    break;
                }
            }
        }
        drop(guard);
        if slot.sleepers.load(SeqCst) & CLIENT_SLEEPS != 0 {
            futex::wake(&slot.state);
        }
        Outcome::Published
    }

    /// All that wait try again: a wake-up can be lost with a register.
    pub fn look_again(&self) {
        // Where the lock is held somebody is at work.
        if let Ok(inside) = self.inside.try_lock() {
            inside.waiters.values().flatten().for_each(|waiter| waiter.condition.notify_all());
        }
    }

    /// The thread tries again.
    pub(super) fn wake(&self, waiter: &Waiter) {
        // From now on it can be seen whether it does go on.
        if let Some(channel) = self.channels.get(waiter.place as usize / SLOTS) {
            let state = &channel.slots[waiter.place as usize % SLOTS].state;
            let _ = state.compare_exchange(BLOCKED, WOKEN, SeqCst, SeqCst);
        }
        waiter.condition.notify_all();
    }

    /// The client that recovers a descriptor has walked it to its state: others may use it.
    pub fn recovered(&self, descriptor: u64, client: u32, slot: &Slot) {
        let mut inside = self.enter();
        let known = inside.knowns.get_mut(&descriptor).filter(|known| known.client == client);
        let status = known.map_or(-libc::EPERM, |known| {
            known.recovering = false;
            0
        });
        self.publish(slot, status);
    }

    /// From here on the call has happened: its caller has the reply whatever becomes of this process.
    pub fn publish(&self, slot: &Slot, status: i32) {
        slot.status.store(status, Relaxed);
        self.control.completed.fetch_add(1, Relaxed);
        slot.state.swap(DONE, SeqCst);
    }
}

/// On the clock that the template reads, too.
fn deadline(until: Instant) -> u64 {
    let left = until.saturating_duration_since(Instant::now()).as_nanos();
    clock::now().saturating_add(u64::try_from(left).unwrap_or(u64::MAX)).max(1)
}

fn wait<'a, T>(guard: MutexGuard<'a, T>, condition: &Condvar, until: Option<Instant>) -> MutexGuard<'a, T> {
    match until {
        None => condition.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
        }
    }
}
