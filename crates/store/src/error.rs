//! What can go wrong, and what to do about it.

use crate::region::SyncError;
use core::fmt;

/// Why a region could not be opened as a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The region does not begin with a store's magic number.
    Foreign,
    /// Written by a newer version.
    Newer { found: u32, known: u32 },
    /// Written for another page size.
    PageSize { found: u32 },
    /// Its own checks fail; the text says which.
    Damaged(&'static str),
    /// The region is shorter than the store that was made in it.
    TooShort { found: u64, needed: u64 },
    /// The working memory handed in does not hold the store's index.
    Scratch { found: u64, needed: u64 },
    /// The medium refused a sync; the number is the kernel's.
    Sync(i32),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            OpenError::Foreign => f.write_str("this is not a store of outlast; check the path"),
            OpenError::Newer { found, known } => {
                write!(f, "the store has format {found}, this outlast knows {known}; resume it with a newer outlast")
            }
            OpenError::PageSize { found } => {
                write!(f, "the store was made for pages of {found} bytes; resume it on a machine with that page size")
            }
            OpenError::Damaged(what) => {
                write!(f, "the store is damaged ({what}); resume an older generation or a replica, or remove it")
            }
            OpenError::TooShort { found, needed } => {
                write!(f, "the store was cut to {found} of {needed} bytes; bring back a complete copy")
            }
            OpenError::Scratch { found, needed } => {
                write!(f, "the store's index needs {needed} bytes of working memory, {found} were given; give more")
            }
            OpenError::Sync(error) => {
                write!(f, "the medium refused a sync (error {error}); check the device, then open the store again")
            }
        }
    }
}

impl core::error::Error for OpenError {}

impl From<SyncError> for OpenError {
    fn from(error: SyncError) -> OpenError {
        OpenError::Sync(error.0)
    }
}

/// Why a commit, a fold or a journal entry did not happen. The last published state is intact after each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// An area is full.
    NoRoom(Area),
    /// The medium refused a sync; the number is the kernel's.
    Sync(i32),
    /// Something was appended outside `begin` … `commit`.
    NoTransaction,
    /// The operation is not possible between `begin` and `commit`.
    InTransaction,
    /// An address or range is not a multiple of the page size, or beyond the address space.
    Misaligned,
    /// The store was opened by `peek`.
    ReadOnly,
    /// What this store wrote reads back differently: something else wrote to the region.
    Damaged,
}

/// The areas that can run full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Commit records.
    Ring,
    /// Frames for pages, or the working memory that lists them.
    Base,
    /// Objects, or the working memory that lists them.
    Objects,
    /// The undo journal.
    Journal,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StoreError::NoRoom(area) => {
                let area = match area {
                    Area::Ring => "commit records",
                    Area::Base => "pages",
                    Area::Objects => "objects",
                    Area::Journal => "the undo journal",
                };
                write!(f, "the store has no room left for {area}; abort, or make a larger store")
            }
            StoreError::Sync(error) => {
                write!(f, "the medium refused a sync (error {error}); abort, check the device, then commit again")
            }
            StoreError::NoTransaction => f.write_str("nothing was begun; call begin first"),
            StoreError::InTransaction => f.write_str("a transaction is open; commit or abort it first"),
            StoreError::Misaligned => f.write_str("an address is not that of a page; abort and pass whole pages"),
            StoreError::ReadOnly => f.write_str("the store was opened for reading; open it for writing"),
            StoreError::Damaged => f.write_str("something else wrote to the store; stop using it and open it again"),
        }
    }
}

impl core::error::Error for StoreError {}

impl From<SyncError> for StoreError {
    fn from(error: SyncError) -> StoreError {
        StoreError::Sync(error.0)
    }
}
