//! Bulk data: buffers that a client and a component share. A client takes one of its channel's, fills it, gives it into a call, and
//! has it back when the call is over, of whatever; while the call has it nobody else has. What is in it is copied by neither side
//! on its way.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::channel::Channel;
use crate::component::Stop;
use crate::error::CallError;
use crate::layout::{ChannelMemory, BUFFER, CLIENTS, FREE, LENT};

/// One that is this client's, until it is dropped.
pub struct Buffer {
    channel: Channel,
    at: usize,
}

impl Channel {
    /// A shared buffer, whose bytes are those that it had last.
    pub fn buffer(&self) -> Result<Buffer, CallError> {
        let free =
            |owner: &std::sync::atomic::AtomicU32| owner.compare_exchange(FREE, CLIENTS, SeqCst, Relaxed).is_ok();
        let at = self.memory().buffers.iter().position(|buffer| free(&buffer.owner)).ok_or(CallError::NoBuffer)?;
        Ok(Buffer { channel: self.clone(), at })
    }
}

impl Buffer {
    /// Its bytes.
    pub const SIZE: usize = BUFFER;

    /// By which calls name it.
    pub fn number(&self) -> u32 {
        self.at as u32
    }

    /// Refused where there are no such bytes, or while a call has it.
    pub fn read(&self, at: usize, length: usize) -> Result<Vec<u8>, CallError> {
        let memory = self.own()?;
        memory.contents[self.at].read_at(at, length).ok_or(CallError::TooLong(BUFFER))
    }

    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), CallError> {
        let memory = self.own()?;
        match memory.contents[self.at].write_at(at, bytes) {
            true => Ok(()),
            false => Err(CallError::TooLong(BUFFER)),
        }
    }

    fn own(&self) -> Result<&ChannelMemory, CallError> {
        let memory = self.channel.memory();
        match memory.buffers[self.at].owner.load(Acquire) {
            CLIENTS => Ok(memory),
            _ => Err(CallError::InACall),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A call that has it still would have borrowed it.
        self.channel.memory().buffers[self.at].owner.store(FREE, Release);
    }
}

/// One that a call has, until the service has done what it is asked.
pub struct Lent<'a> {
    memory: &'a ChannelMemory,
    at: usize,
}

impl<'a> Lent<'a> {
    pub(crate) fn take(memory: &'a ChannelMemory, number: u32) -> Result<Self, Stop> {
        let at = number as usize;
        let owner = &memory.buffers.get(at).ok_or(Stop::Refused(libc::EINVAL))?.owner;
        match owner.compare_exchange(CLIENTS, LENT, SeqCst, Relaxed) {
            Ok(_) => Ok(Self { memory, at }),
            Err(LENT) => Err(Stop::Refused(libc::EBUSY)),
            Err(_) => Err(Stop::Refused(libc::EINVAL)),
        }
    }

    pub fn number(&self) -> u32 {
        self.at as u32
    }

    /// EINVAL where there are no such bytes.
    pub fn read(&self, at: usize, length: usize) -> Result<Vec<u8>, Stop> {
        self.memory.contents[self.at].read_at(at, length).ok_or(Stop::Errno(libc::EINVAL))
    }

    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), Stop> {
        match self.memory.contents[self.at].write_at(at, bytes) {
            true => Ok(()),
            false => Err(Stop::Errno(libc::EINVAL)),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let _ = self.memory.buffers[self.at].owner.compare_exchange(LENT, CLIENTS, SeqCst, Relaxed);
    }
}
