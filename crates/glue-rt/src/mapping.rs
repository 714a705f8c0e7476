//! Memory of a memory manager, mapped by a client until it is asked to let go of it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A mapping that may be revoked: each access looks whether it still is there, and keeps it there meanwhile.
pub struct Mapped {
    at: RwLock<Option<Bytes>>,
}

struct Bytes {
    start: NonNull<u8>,
    length: usize,
    writable: bool,
}

// SAFETY: shared memory that anybody may write; accessed by copies, whose bytes nobody believes.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

/// Why memory cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It was revoked.
    Revoked,
    /// It may be read only.
    ReadOnly,
    /// It has no such bytes.
    Outside,
}

impl Bytes {
    fn map(file: BorrowedFd<'_>, length: usize, writable: bool) -> io::Result<Self> {
        // SAFETY: plain calls; the result of mmap is checked. The file is sealed against shrinking, or not mapped: else an
        // access could be a fault.
        unsafe {
            let seals = libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS);
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(file.as_raw_fd(), &mut status) < 0 {
                return Err(io::Error::last_os_error());
            }
            if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 || status.st_size < length as libc::off_t {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not memory of a memory manager"));
            }
            let rights = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
            let at = libc::mmap(std::ptr::null_mut(), length, rights, libc::MAP_SHARED, file.as_raw_fd(), 0);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { start: NonNull::new_unchecked(at.cast()), length, writable })
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; whoever copies holds the lock that this is dropped under.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

impl Mapped {
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Unusable> {
        self.with(at, to.len(), false, |from| {
            // SAFETY: within the mapping (checked), which the lock keeps.
            unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
        })
    }

    pub fn write(&self, at: usize, from: &[u8]) -> Result<(), Unusable> {
        self.with(at, from.len(), true, |to| {
            // SAFETY: as above, and it may be written.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
        })
    }

    fn with(&self, at: usize, count: usize, write: bool, copy: impl FnOnce(*mut u8)) -> Result<(), Unusable> {
        let bytes = self.at.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = bytes.as_ref().ok_or(Unusable::Revoked)?;
        match at.checked_add(count) {
            Some(end) if end <= bytes.length => {}
            _ => return Err(Unusable::Outside),
        }
        if write && !bytes.writable {
            return Err(Unusable::ReadOnly);
        }
        // SAFETY: within the mapping.
        copy(unsafe { bytes.start.as_ptr().add(at) });
        Ok(())
    }

    fn revoke(&self) {
        *self.at.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What a client has mapped, by the descriptors of it.
#[derive(Default)]
pub struct Mappings {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    mapped: HashMap<u64, Arc<Mapped>>,
    /// Ids are never used again, so that a mapping that comes too late is known as such.
    revoked: HashSet<u64>,
}

impl Mappings {
    /// Maps what the descriptor stands for; None if it was revoked meanwhile.
    pub fn map(
        &self,
        descriptor: u64,
        file: BorrowedFd<'_>,
        length: usize,
        writable: bool,
    ) -> io::Result<Option<Arc<Mapped>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.revoked.contains(&descriptor) {
            return Ok(None);
        }
        if let Some(mapped) = known.mapped.get(&descriptor) {
            return Ok(Some(mapped.clone()));
        }
        let mapped = Arc::new(Mapped { at: RwLock::new(Some(Bytes::map(file, length, writable)?)) });
        known.mapped.insert(descriptor, mapped.clone());
        Ok(Some(mapped))
    }

    /// What was mapped and has not been revoked.
    pub fn get(&self, descriptor: u64) -> Option<Arc<Mapped>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.mapped.get(&descriptor).cloned()
    }

    /// When this returns nobody here can reach the memory by the descriptor, and nobody will.
    pub fn revoke(&self, descriptor: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.revoked.insert(descriptor);
        if let Some(mapped) = known.mapped.remove(&descriptor) {
            mapped.revoke();
        }
    }
}
