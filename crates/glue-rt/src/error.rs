//! Why a call has no result.

use displaydoc::Display;
use thiserror::Error;

#[derive(Clone, Copy, Debug, Display, Error, PartialEq, Eq)]
pub enum CallError {
    /// the service says errno {0}
    Service(i32),
    /// descriptor {0} is not open here: use one that this client created and has not closed
    Unknown(u64),
    /// the component refused the call (errno {0}): descriptor, argument or operation was not this client's to use
    Refused(i32),
    /// the component was given up after too many micro-reboots without a completed call: start it again
    GivenUp,
    /// the component died {0} times while it executed this very call: do not repeat it
    Poisonous(u32),
    /// more threads than a channel has slots for: call from fewer, or have a second channel granted
    NoSlot,
    /// more bytes than a call or a buffer has room for ({0}): make several calls
    TooLong(usize),
    /// the component died while it had this client recover a descriptor: whoever needs it asks again
    Outdated,
    /// the component died, and stubs without recovery are called: start it again, with all that was open there
    Died,
    /// all shared buffers of the channel are taken: give some back
    NoBuffer,
    /// a call has the buffer: wait until it is over
    InACall,
}

impl CallError {
    /// For interfaces in C: the negative errno that says the same.
    pub fn errno(self) -> i32 {
        match self {
            Self::Service(errno) | Self::Refused(errno) => errno,
            Self::Unknown(_) => libc::EBADF,
            Self::GivenUp | Self::Died => libc::EOWNERDEAD,
            Self::Poisonous(_) => libc::EIO,
            Self::NoSlot | Self::Outdated => libc::EAGAIN,
            Self::TooLong(_) => libc::EMSGSIZE,
            Self::InACall => libc::EBUSY,
            Self::NoBuffer => libc::ENOBUFS,
        }
    }
}
