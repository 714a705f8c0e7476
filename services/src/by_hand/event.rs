//! Events, whose recovery is written by hand. Any client may use any event, but the one that created it recovers it, for itself or
//! because the component asks for it. Whether it was triggered is on record with the component.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use outlast_glue_rt::{CallError, Channel, Interrupted, Request, Restorer, Word, EAGER, RECOVERED, RECREATE, TRY};

use crate::stubs::event::operation;

/// The service, for one client of it. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    channel: Channel,
    /// Those that this client created.
    own: RwLock<HashMap<u64, Arc<Own>>>,
}

struct Own {
    parent: u64,
    group: i32,
    /// In which the component knows it. Who recovers it holds the lock.
    epoch: Mutex<u32>,
}

impl Client {
    pub fn new(channel: Channel) -> Self {
        let shared = Arc::new(Shared { channel, own: RwLock::default() });
        let weak = Arc::downgrade(&shared);
        shared.channel.listen(move |event| {
            let shared = weak.upgrade()?;
            let asked = Some(shared.channel.epoch());
            Some(shared.find(event).is_some_and(|own| shared.current(event, &own, asked).is_ok()))
        });
        Self { shared }
    }

    pub fn event_split(&self, parent: u64, group: i32) -> Result<u64, CallError> {
        let Shared { channel, own } = &*self.shared;
        let above = self.shared.find(parent);
        let mut restorer = Restorer::default();
        loop {
            let epoch = match &above {
                Some(above) => self.shared.current(parent, above, None)?,
                None => channel.epoch(),
            };
            let words = &[parent, group.into_word()];
            match channel.call(&Request { operation: operation::EVENT_SPLIT, epoch, words, ..Request::default() }) {
                Ok(reply) => {
                    let event = reply.words[0];
                    let made = Own { parent, group, epoch: Mutex::new(epoch) };
                    own.write().unwrap_or_else(PoisonError::into_inner).insert(event, Arc::new(made));
                    return Ok(event);
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    pub fn event_wait(&self, event: u64) -> Result<i32, CallError> {
        self.shared.call(event, operation::EVENT_WAIT, EAGER)
    }

    pub fn event_trigger(&self, event: u64) -> Result<i32, CallError> {
        self.shared.call(event, operation::EVENT_TRIGGER, 0)
    }

    pub fn event_free(&self, event: u64) -> Result<i32, CallError> {
        let result = self.shared.call(event, operation::EVENT_FREE, 0)?;
        self.shared.own.write().unwrap_or_else(PoisonError::into_inner).remove(&event);
        Ok(result)
    }
}

impl Shared {
    fn find(&self, event: u64) -> Option<Arc<Own>> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).get(&event).cloned()
    }

    fn call(&self, event: u64, operation: u32, flags: u32) -> Result<i32, CallError> {
        let own = self.find(event);
        let mut restorer = Restorer::default();
        loop {
            let epoch = match &own {
                Some(own) => self.current(event, own, None)?,
                None => self.channel.epoch(),
            };
            let request = Request { operation, flags, epoch, words: &[event], ..Request::default() };
            match self.channel.call(&request) {
                // No honest server sends what is no number.
                Ok(reply) => return i32::from_word(reply.words[0]).ok_or(CallError::Service(libc::EBADMSG)),
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    /// The component's epoch, in which it knows the event. `asked`: that in which it asked for it.
    fn current(&self, event: u64, own: &Own, asked: Option<u32>) -> Result<u32, CallError> {
        let mut restorer = Restorer::new(asked);
        let mut known = self.lock(own, asked)?;
        loop {
            let epoch = self.channel.epoch();
            if *known == epoch {
                return Ok(epoch);
            }
            let parent = self.find(own.parent);
            let above = parent.map_or(Ok(epoch), |parent| self.current(own.parent, &parent, asked))?;
            match self.make_again(event, own, above) {
                Ok(()) => *known = above,
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    /// Who was asked by a component that has died since then waits for nobody: the next one may ask for something else first.
    fn lock<'a>(&self, own: &'a Own, asked: Option<u32>) -> Result<MutexGuard<'a, u32>, CallError> {
        let Some(epoch) = asked else { return Ok(own.epoch.lock().unwrap_or_else(PoisonError::into_inner)) };
        loop {
            match own.epoch.try_lock() {
                Ok(known) => return Ok(known),
                Err(TryLockError::Poisoned(known)) => return Ok(known.into_inner()),
                Err(TryLockError::WouldBlock) if self.channel.epoch() != epoch => return Err(CallError::Outdated),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Under its old number, triggered if it was. Others see it when all of that is done.
    #[cold]
    fn make_again(&self, event: u64, own: &Own, epoch: u32) -> Result<(), Interrupted> {
        let words = &[own.parent, own.group.into_word()];
        let (operation, flags) = (operation::EVENT_SPLIT, RECREATE);
        let split = Request { operation, flags, epoch, wanted: event, words, ..Request::default() };
        let recorded = self.channel.call(&split)?.words[7] as u32;
        if recorded == operation::EVENT_TRIGGER {
            let (operation, flags) = (operation::EVENT_TRIGGER, TRY | RECREATE);
            let words = &[event];
            self.channel.call(&Request { operation, flags, epoch, wanted: event, words, ..Request::default() })?;
        }
        self.channel.call(&Request { operation: RECOVERED, epoch, wanted: event, ..Request::default() })?;
        Ok(())
    }
}
