//! Data of several threads, under a lock of the lock component.

use std::sync::{Mutex, TryLockError};

use crate::failure::Failure;
use crate::stubs::Lock;

pub struct Guarded<T> {
    lock: u64,
    /// Never waited for: it is found taken only if the component gave its lock to two threads.
    inside: Mutex<T>,
}

impl<T> Guarded<T> {
    pub fn new(locks: &Lock, inside: T) -> Result<Self, Failure> {
        Ok(Self { lock: locks.lock_alloc()?, inside: Mutex::new(inside) })
    }

    /// Does something to the data while no other thread does. `thread`: the caller's number, which no other thread has.
    pub fn with<R>(&self, locks: &Lock, thread: u32, work: impl FnOnce(&mut T) -> R) -> Result<R, Failure> {
        locks.lock_take(self.lock, thread)?;
        let result = match self.inside.try_lock() {
            Ok(mut inside) => work(&mut inside),
            Err(TryLockError::Poisoned(inside)) => work(&mut inside.into_inner()),
            Err(TryLockError::WouldBlock) => return Err(Failure::NotExclusive),
        };
        locks.lock_release(self.lock, thread)?;
        Ok(result)
    }
}
