//! Memory that processes share: memfds, sealed so that nobody can pull it away from under another.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// A shared mapping; `T` consists of atomics only, so that any bytes are a valid one.
pub struct Shared<T> {
    at: NonNull<T>,
}

// SAFETY: the mapping stays until the drop, and `T: Sync` is what the threads use of it.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// A fresh one, all bytes zero, which can neither shrink nor grow.
    pub fn create(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
        // SAFETY: a call with a valid string; the descriptor is new and ours.
        let fd = unsafe {
            let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: plain calls on a descriptor that is ours.
        let failed = unsafe {
            libc::ftruncate(fd.as_raw_fd(), size_of::<T>() as libc::off_t) < 0
                || libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) < 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        Ok(fd)
    }

    /// Refuses a file of another size, or one that could shrink later.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: plain calls; the result of mmap is checked before it is used.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(fd.as_raw_fd(), &mut status) < 0 {
                return Err(io::Error::last_os_error());
            }
            let seals = libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS);
            if status.st_size != size_of::<T>() as libc::off_t || seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a channel of this version"));
            }
            let at = libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { at: NonNull::new_unchecked(at.cast()) })
        }
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: mapped until the drop, page-aligned, large enough (checked), any bytes are a valid `T`.
        unsafe { self.at.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size.
        unsafe { libc::munmap(self.at.as_ptr().cast(), size_of::<T>()) };
    }
}

/// Bytes that both sides may write at any time: copied out once before they are looked at.
#[repr(transparent)]
pub struct Bytes<const N: usize>([std::cell::UnsafeCell<u8>; N]);

// SAFETY: accessed by volatile copies through raw pointers only; a race yields bytes of either side, which are checked.
unsafe impl<const N: usize> Sync for Bytes<N> {}

impl<const N: usize> Bytes<N> {
    /// False where there are no such bytes.
    pub fn read_into(&self, at: usize, bytes: &mut [u8]) -> bool {
        let Some(cells) = at.checked_add(bytes.len()).and_then(|end| self.0.get(at..end)) else { return false };
        // SAFETY: as many bytes lie within the cells as there is room for.
        unsafe { std::ptr::copy_nonoverlapping(cells.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    pub fn read(&self, length: usize) -> Option<Vec<u8>> {
        self.read_at(0, length)
    }

    /// None where there are no such bytes.
    pub fn read_at(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        let cells = self.0.get(at..at.checked_add(length)?)?;
        let mut bytes = Vec::with_capacity(length);
        // SAFETY: `length` bytes lie within the cells and within the vector's capacity.
        unsafe {
            std::ptr::copy_nonoverlapping(cells.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), length);
            bytes.set_len(length);
        }
        Some(bytes)
    }

    /// False where they do not fit.
    pub fn write(&self, bytes: &[u8]) -> bool {
        self.write_at(0, bytes)
    }

    pub fn write_at(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(cells) = at.checked_add(bytes.len()).and_then(|end| self.0.get(at..end)) else { return false };
        // SAFETY: they fit; the cells may be written through a shared reference.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), cells.as_ptr().cast::<u8>().cast_mut(), bytes.len()) };
        true
    }
}
