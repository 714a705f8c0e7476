//! Locks, whose recovery is written by hand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use outlast_glue_rt::{CallError, Channel, Interrupted, Request, Restorer, Word, EAGER, RECREATE, TRY};

use crate::stubs::lock::operation;

/// The service, for one client of it. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    channel: Channel,
    locks: RwLock<HashMap<u64, Arc<Lock>>>,
    last: AtomicU64,
}

struct Lock {
    /// Read from before a call until it is noted who holds the lock. Who recovers it writes: by then all that has happened is
    /// noted, for calls to the dead have ended.
    place: RwLock<Place>,
    held: Mutex<Held>,
}

/// Where the component knows it.
struct Place {
    epoch: u32,
    server: u64,
}

/// By whom, since the call with that place in the order of effects.
struct Held {
    sequence: u64,
    thread: Option<u32>,
}

impl Client {
    pub fn new(channel: Channel) -> Self {
        Self { shared: Arc::new(Shared { channel, locks: RwLock::default(), last: AtomicU64::new(0) }) }
    }

    pub fn lock_alloc(&self) -> Result<u64, CallError> {
        let mut restorer = Restorer::default();
        loop {
            let epoch = self.shared.channel.epoch();
            let request = Request { operation: operation::LOCK_ALLOC, epoch, ..Request::default() };
            match self.shared.channel.call(&request) {
                Ok(reply) => {
                    let id = self.shared.last.fetch_add(1, Ordering::Relaxed) + 1;
                    let place = RwLock::new(Place { epoch, server: reply.words[0] });
                    let held = Mutex::new(Held { sequence: reply.sequence, thread: None });
                    let mut locks = self.shared.locks.write().unwrap_or_else(PoisonError::into_inner);
                    locks.insert(id, Arc::new(Lock { place, held }));
                    return Ok(id);
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    pub fn lock_pretake(&self, lock: u64, thread: u32) -> Result<i32, CallError> {
        self.call(lock, operation::LOCK_PRETAKE, 0, &[thread], None)
    }

    pub fn lock_take(&self, lock: u64, thread: u32) -> Result<i32, CallError> {
        self.call(lock, operation::LOCK_TAKE, EAGER, &[thread], Some(Some(thread)))
    }

    pub fn lock_release(&self, lock: u64, thread: u32) -> Result<i32, CallError> {
        self.call(lock, operation::LOCK_RELEASE, 0, &[thread], Some(None))
    }

    pub fn lock_free(&self, lock: u64) -> Result<i32, CallError> {
        let result = self.call(lock, operation::LOCK_FREE, 0, &[], None)?;
        self.shared.locks.write().unwrap_or_else(PoisonError::into_inner).remove(&lock);
        Ok(result)
    }

    /// `holder`: who holds the lock afterwards, if that changes.
    fn call(
        &self,
        lock: u64,
        operation: u32,
        flags: u32,
        thread: &[u32],
        holder: Option<Option<u32>>,
    ) -> Result<i32, CallError> {
        let locks = self.shared.locks.read().unwrap_or_else(PoisonError::into_inner);
        let known = locks.get(&lock).cloned().ok_or(CallError::Unknown(lock))?;
        drop(locks);
        let mut restorer = Restorer::default();
        loop {
            let place = known.place.read().unwrap_or_else(PoisonError::into_inner);
            if place.epoch != self.shared.channel.epoch() {
                drop(place);
                known.recover(&self.shared.channel)?;
                continue;
            }
            let words = [place.server, thread.first().map_or(0, |thread| thread.into_word())];
            let words = &words[..=thread.len()];
            let request = Request { operation, flags, epoch: place.epoch, words, ..Request::default() };
            match self.shared.channel.call(&request) {
                Ok(reply) => {
                    if let Some(thread) = holder {
                        known.note(reply.sequence, thread);
                    }
                    // No honest server sends what is no number.
                    return i32::from_word(reply.words[0]).ok_or(CallError::Service(libc::EBADMSG));
                }
                Err(interrupted) => {
                    drop(place);
                    restorer.again(interrupted)?;
                }
            }
        }
    }
}

impl Lock {
    /// Replies are not noted in the order of the calls: the latest call counts.
    fn note(&self, sequence: u64, thread: Option<u32>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if sequence > held.sequence {
            *held = Held { sequence, thread };
        }
    }

    #[cold]
    fn recover(&self, channel: &Channel) -> Result<(), CallError> {
        let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
        let mut restorer = Restorer::default();
        loop {
            let epoch = channel.epoch();
            if place.epoch == epoch {
                return Ok(());
            }
            match self.make_again(channel, epoch) {
                Ok(server) => {
                    *place = Place { epoch, server };
                    return Ok(());
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    /// A new lock, taken by whoever held it.
    fn make_again(&self, channel: &Channel, epoch: u32) -> Result<u64, Interrupted> {
        let alloc = Request { operation: operation::LOCK_ALLOC, flags: RECREATE, epoch, ..Request::default() };
        let server = channel.call(&alloc)?.words[0];
        let holder = self.held.lock().unwrap_or_else(PoisonError::into_inner).thread;
        if let Some(thread) = holder {
            let words = &[server, thread.into_word()];
            let (operation, flags) = (operation::LOCK_TAKE, TRY | RECREATE);
            channel.call(&Request { operation, flags, epoch, words, ..Request::default() })?;
        }
        Ok(server)
    }
}
