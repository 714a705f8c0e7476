//! Where a store lives: a flat range of bytes that outlives the process.

use crate::areas::PAGE;
use crate::cpu::Cpu;
use crate::crc::crc32c;
use core::sync::atomic::{compiler_fence, fence, AtomicU64, Ordering};

/// A sync that failed, with the kernel's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncError(pub i32);

/// A range of bytes. Offsets are bytes from its start.
///
/// When the writer is killed, a prefix of its writes in program order is kept, the last one possibly in part.
/// When power fails, everything synced is kept, and of the rest any subset of 512-byte sectors.
/// The store checks every offset against [`Region::len`] before it uses it.
#[allow(clippy::len_without_is_empty)]
pub trait Region {
    /// Length in bytes; does not change.
    fn len(&self) -> u64;
    /// Copies bytes out.
    fn read(&self, off: u64, into: &mut [u8]);
    /// Copies bytes in.
    fn write(&mut self, off: u64, bytes: &[u8]);
    /// Copies many bytes in that are not looked at soon. Multiples of 4096.
    fn write_pages(&mut self, off: u64, bytes: &[u8]) {
        self.write(off, bytes);
    }
    /// The range is going to be written to, bit by bit. Nothing else changes. Multiples of 4096.
    fn expect(&mut self, _off: u64, _len: u64) {}
    /// Stores 8 bytes at once, after all earlier writes. `off` is a multiple of 8.
    fn publish(&mut self, off: u64, value: u64);
    /// Loads 8 bytes at once, before all later reads. `off` is a multiple of 8.
    fn load(&self, off: u64) -> u64;
    /// Gives the bytes' memory back; they read as zero. Multiples of 4096.
    fn discard(&mut self, off: u64, len: u64);
    /// Makes sure that the range has room, so that writing to it cannot fail. False: there is none.
    fn reserve(&mut self, _off: u64, _len: u64) -> bool {
        true
    }
    /// Returns when the range is on the medium. Without a medium there is nothing to do. Multiples of 4096.
    fn sync(&mut self, off: u64, len: u64) -> Result<(), SyncError>;

    /// What tells the cache before the medium from others: one number a boot. As long as it is the same, all that was written is
    /// there, synced or not. 0: not known.
    fn cache(&self) -> u64 {
        0
    }

    /// Syncs the pages that the range touches.
    fn sync_pages_of(&mut self, off: u64, len: u64) -> Result<(), SyncError> {
        let from = off / PAGE * PAGE;
        self.sync(from, (off + len).next_multiple_of(PAGE) - from)
    }

    /// Copies inside the region; the ranges do not overlap.
    #[inline]
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        let mut buffer = [0; 512];
        let mut done = 0;
        while done < len {
            let piece = &mut buffer[..(len - done).min(512) as usize];
            self.read(from + done, piece);
            self.write(to + done, piece);
            done += piece.len() as u64;
        }
    }

    /// Copies a page to where nobody looks soon.
    fn copy_page(&mut self, from: u64, to: u64) {
        self.copy(from, to, PAGE);
    }

    /// Continues a CRC-32C over a range.
    #[inline]
    fn checksum(&self, cpu: Cpu, crc: u32, off: u64, len: u64) -> u32 {
        let (mut crc, mut done) = (crc, 0);
        let mut buffer = [0; 512];
        while done < len {
            let piece = &mut buffer[..(len - done).min(512) as usize];
            self.read(off + done, piece);
            crc = crc32c(cpu, crc, piece);
            done += piece.len() as u64;
        }
        crc
    }

    /// No write moves across this point, in either direction.
    #[inline]
    fn barrier(&mut self) {
        compiler_fence(Ordering::SeqCst);
    }
}

/// A region that is mapped shared into this address space.
pub struct MappedRegion {
    base: *mut u8,
    len: u64,
    file: File,
    cache: u64,
}

/// What the owner of a mapping can do to its file. Offsets are the mapping's, too.
#[derive(Clone, Copy)]
pub struct File {
    /// Punches a hole: offset, length.
    pub discard: fn(u64, u64),
    /// Gives a hole room: offset, length.
    pub reserve: fn(u64, u64) -> bool,
    /// Returns 0 or a negative error number: offset, length.
    pub sync: fn(u64, u64) -> i64,
    /// Has the mapping's pages ready to be written to, if that can be: offset, length.
    pub expect: fn(u64, u64),
    /// Writes without the mapping, and returns how much of it that took, which may be nothing: offset, bytes.
    pub write: fn(u64, &[u8]) -> usize,
}

// SAFETY: the mapping is not tied to a thread; exclusive use follows from `&mut`.
unsafe impl Send for MappedRegion {}

impl MappedRegion {
    /// A mapping of `len` bytes at `base`.
    ///
    /// # Safety
    /// The mapping is readable and writable, stays as long as the region is used, starts at a multiple of 4096, and no
    /// reference to its bytes exists elsewhere in this process.
    pub unsafe fn new(base: *mut u8, len: u64, file: File) -> MappedRegion {
        MappedRegion { base, len, file, cache: 0 }
    }

    /// The same with [`Region::cache`] known.
    pub fn with_cache(self, cache: u64) -> MappedRegion {
        MappedRegion { cache, ..self }
    }

    /// Start of the mapping.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    #[inline]
    fn at(&self, off: u64, len: u64) -> Option<*mut u8> {
        let inside = off <= self.len && len <= self.len - off;
        debug_assert!(inside, "{off} + {len} lies outside a region of {} bytes", self.len);
        // SAFETY: inside the mapping.
        inside.then(|| unsafe { self.base.add(off as usize) })
    }

    #[inline]
    fn word(&self, off: u64) -> Option<&AtomicU64> {
        debug_assert!(off % 8 == 0);
        // SAFETY: inside the mapping and aligned, since the mapping is.
        self.at(off & !7, 8).map(|at| unsafe { &*at.cast::<AtomicU64>() })
    }
}

impl Region for MappedRegion {
    #[inline]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn read(&self, off: u64, into: &mut [u8]) {
        match self.at(off, into.len() as u64) {
            // SAFETY: inside the mapping; `into` is not, since no reference to the mapping's bytes exists.
            Some(from) => unsafe { core::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) },
            None => into.fill(0),
        }
    }

    #[inline]
    fn write(&mut self, off: u64, bytes: &[u8]) {
        if let Some(to) = self.at(off, bytes.len() as u64) {
            // SAFETY: inside the mapping; `bytes` is not.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
        }
    }

    fn write_pages(&mut self, off: u64, bytes: &[u8]) {
        if self.at(off, bytes.len() as u64).is_some() {
            self.barrier();
            let done = (self.file.write)(off, bytes).min(bytes.len());
            self.write(off + done as u64, &bytes[done..]);
        }
    }

    #[inline]
    fn publish(&mut self, off: u64, value: u64) {
        fence(Ordering::Release);
        if let Some(word) = self.word(off) {
            word.store(value, Ordering::Release);
        }
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn load(&self, off: u64) -> u64 {
        self.word(off).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn discard(&mut self, off: u64, len: u64) {
        if self.at(off, len).is_some() {
            self.barrier();
            (self.file.discard)(off, len);
            self.barrier();
        }
    }

    fn reserve(&mut self, off: u64, len: u64) -> bool {
        self.at(off, len).is_some() && (self.file.reserve)(off, len)
    }

    fn expect(&mut self, off: u64, len: u64) {
        if self.at(off, len).is_some() {
            (self.file.expect)(off, len);
        }
    }

    fn sync(&mut self, off: u64, len: u64) -> Result<(), SyncError> {
        self.barrier();
        match (self.file.sync)(off, len) {
            0.. => Ok(()),
            error => Err(SyncError(-error as i32)),
        }
    }

    #[inline]
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        if let (Some(from), Some(to)) = (self.at(from, len), self.at(to, len)) {
            // SAFETY: both inside the mapping; `copy` allows an overlap.
            unsafe { core::ptr::copy(from, to, len as usize) }
        }
    }

    fn cache(&self) -> u64 {
        self.cache
    }

    fn copy_page(&mut self, from: u64, to: u64) {
        let Some(at) = self.at(from, PAGE) else { return };
        self.barrier();
        // SAFETY: inside the mapping; the slice is gone before anything is written through it.
        let done = (self.file.write)(to, unsafe { core::slice::from_raw_parts(at, PAGE as usize) });
        if done < PAGE as usize {
            self.copy(from, to, PAGE);
        }
    }

    #[inline]
    fn checksum(&self, cpu: Cpu, crc: u32, off: u64, len: u64) -> u32 {
        match self.at(off, len) {
            // SAFETY: inside the mapping, and nothing writes to it while `self` is borrowed; a process that tampers with
            // the file meanwhile changes the result, which is checked, and nothing else.
            Some(from) => crc32c(cpu, crc, unsafe { core::slice::from_raw_parts(from, len as usize) }),
            None => !crc,
        }
    }
}
