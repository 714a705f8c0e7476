//! Locks between the threads of a client.

use std::collections::HashMap;

use outlast_glue_rt::Stop;

use crate::stubs::lock::Service;

#[derive(Clone, Default)]
pub struct Locks {
    last: u64,
    /// Who holds each.
    holders: HashMap<u64, Option<u32>>,
}

impl Locks {
    fn holder(&mut self, lock: u64) -> Result<&mut Option<u32>, Stop> {
        self.holders.get_mut(&lock).ok_or(Stop::Errno(libc::EBADF))
    }
}

impl Service for Locks {
    fn lock_alloc(&mut self, _client: u32) -> Result<u64, Stop> {
        self.last += 1;
        self.holders.insert(self.last, None);
        Ok(self.last)
    }

    fn lock_pretake(&mut self, _client: u32, lock: u64, _thread: u32) -> Result<i32, Stop> {
        Ok(i32::from(self.holder(lock)?.is_none()))
    }

    fn lock_take(&mut self, _client: u32, lock: u64, thread: u32) -> Result<i32, Stop> {
        let holder = self.holder(lock)?;
        match *holder {
            Some(other) if other == thread => Err(Stop::Errno(libc::EDEADLK)),
            Some(_) => Err(Stop::Wait { until: None }),
            None => {
                *holder = Some(thread);
                Ok(0)
            }
        }
    }

    fn lock_release(&mut self, _client: u32, lock: u64, thread: u32) -> Result<i32, Stop> {
        let holder = self.holder(lock)?;
        if *holder != Some(thread) {
            return Err(Stop::Errno(libc::EPERM));
        }
        *holder = None;
        Ok(0)
    }

    fn lock_free(&mut self, _client: u32, lock: u64) -> Result<i32, Stop> {
        if self.holder(lock)?.is_some() {
            return Err(Stop::Errno(libc::EBUSY));
        }
        self.holders.remove(&lock);
        Ok(0)
    }
}
