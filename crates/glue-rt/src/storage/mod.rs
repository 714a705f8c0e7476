//! G1's memory: data of a service's resources, such as contents of files, which outlives instances.
//!
//! A file in memory that no instance maps: a wild store cannot reach it, only a call that names a place in it. And what is
//! read back is compared with its check value, for a service that fails may have made such calls, too.
//!
//! ```text
//!   header  │ table of entries: key, length, name, roots │ blocks: indexes (512 pointers to blocks), data
//! ```
//!
//! Blocks are never overwritten while something points to them: a change writes new ones, and the entries that point to them are
//! put down beside the replies of the last calls (`recent`), before these are published. From there they come into the table: if
//! the instance dies before the reply to the call that made the change was published, that call has not happened, and they do not.

mod blocks;
mod entry;
mod recent;
mod resources;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

pub use recent::{apply, Area};
pub use resources::{ResourceError, Resources, LARGEST, NAME};

/// Resources of a component.
const ENTRIES: usize = 8192;
/// Blocks are numbered from 1; no number is none.
const BLOCKS: u32 = 65_536;
const BLOCK: usize = 4096;
const ENTRY: usize = 512;

/// u64: the last key that was handed out; u64: entries that have ever been in use.
const LAST_KEY: u64 = 0;
const USED: u64 = 8;
const TABLE: u64 = BLOCK as u64;
const DATA: u64 = TABLE + (ENTRIES * ENTRY) as u64;
const SIZE: u64 = DATA + (BLOCKS as u64 + 1) * BLOCK as u64;

/// Where it lies. What was written is there when the process that wrote it is not.
pub trait Medium {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Medium for File {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }
}

/// An empty one; takes memory only for what is written.
pub fn create() -> io::Result<OwnedFd> {
    // SAFETY: a call with a valid string; the descriptor is new and ours.
    let fd = unsafe {
        let fd = libc::memfd_create(c"component-storage".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain calls on a descriptor that is ours.
    let failed = unsafe {
        libc::ftruncate(fd.as_raw_fd(), SIZE as libc::off_t) < 0
            || libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) < 0
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(fd),
    }
}

fn word(medium: &impl Medium, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    medium.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn set_word(medium: &impl Medium, at: u64, word: u64) -> io::Result<()> {
    medium.write(at, &word.to_le_bytes())
}
