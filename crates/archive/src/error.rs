//! Why a generation cannot be kept or brought back.

use displaydoc::Display;
use outlast_store::{OpenError, StoreError};
use rustix::io::Errno;
use thiserror::Error;

/// What went wrong; the archive is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Error)]
pub enum ArchiveError {
    /// generation {0} is not kept
    Missing(u64),
    /// generation {0} is damaged or was altered
    Damaged(u64),
    /// generation {0} was written by a newer version
    Newer(u64),
    /// generation {0} is encrypted with another key
    WrongKey(u64),
    /// generation {0} is encrypted, and there is no key
    KeyNeeded(u64),
    /// generation {0} is encrypted for another program
    Foreign(u64),
    /// generation {0} is not encrypted, as those of the program are
    Plain(u64),
    /// one generation takes more than the budget
    OverBudget,
    /// there is no room for it
    NoRoom,
    /// the program changed its store faster than it could be read
    Restless,
    /// it was to be over
    Cancelled,
    /// the store cannot be read: {0}
    Store(OpenError),
    /// the store cannot be written: {0}
    Write(StoreError),
    /// {0}
    Kernel(Errno),
}

impl ArchiveError {
    /// Whether it tells of the archive as a whole: nothing of it may be used or removed.
    pub fn is_about_key(self) -> bool {
        matches!(self, Self::WrongKey(_) | Self::KeyNeeded(_) | Self::Foreign(_) | Self::Plain(_))
    }
}

impl From<Errno> for ArchiveError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoRoom,
            error => Self::Kernel(error),
        }
    }
}

impl From<std::io::Error> for ArchiveError {
    fn from(error: std::io::Error) -> Self {
        Errno::from_io_error(&error).unwrap_or(Errno::IO).into()
    }
}
