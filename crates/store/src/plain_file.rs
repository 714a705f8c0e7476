//! A region in a file that is read and written by system calls: whoever else has the file open may cut it off, and a mapping
//! would answer that with a signal.

use crate::boot::boot;
use crate::cpu::Cpu;
use crate::crc::crc32c;
use crate::region::{Region, SyncError};
use rustix::fs::{fallocate, fdatasync, fstat, FallocateFlags};
use rustix::io::{pread, pwrite, Errno};
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

const HOLE: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
const PIECE: usize = 64 << 10;

/// A file. What is not there reads as zero; what cannot be written is told by [`PlainFile::error`], and by every sync.
pub struct PlainFile {
    file: OwnedFd,
    len: u64,
    error: Cell<Option<Errno>>,
    cache: u64,
}

impl PlainFile {
    /// A region as long as the file is now.
    ///
    /// # Errors
    /// What the kernel says to fstat.
    pub fn new(file: OwnedFd) -> io::Result<PlainFile> {
        let len = fstat(&file)?.st_size as u64;
        Ok(PlainFile { file, len, error: Cell::new(None), cache: boot() })
    }

    /// The first failure.
    pub fn error(&self) -> Option<Errno> {
        self.error.get()
    }

    fn failed(&self, error: Errno) {
        self.error.set(self.error.get().or(Some(error)));
    }
}

impl Region for PlainFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, off: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            match pread(&self.file, &mut into[done..], off + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.failed(error);
                    break;
                }
            }
        }
        into[done..].fill(0);
    }

    fn write(&mut self, off: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            match pwrite(&self.file, &bytes[done..], off + done as u64) {
                Ok(0) => return self.failed(Errno::NOSPC),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(error) => return self.failed(error),
            }
        }
    }

    fn publish(&mut self, off: u64, value: u64) {
        self.write(off, &value.to_le_bytes());
    }

    fn load(&self, off: u64) -> u64 {
        let mut word = [0; 8];
        self.read(off, &mut word);
        u64::from_le_bytes(word)
    }

    fn discard(&mut self, off: u64, len: u64) {
        if let Err(error) = fallocate(&self.file, HOLE, off, len) {
            self.failed(error);
        }
    }

    fn reserve(&mut self, off: u64, len: u64) -> bool {
        fallocate(&self.file, FallocateFlags::KEEP_SIZE, off, len).is_ok()
    }

    fn sync(&mut self, _off: u64, _len: u64) -> Result<(), SyncError> {
        let synced = fdatasync(&self.file);
        self.error.get().map_or(synced, Err).map_err(|error| SyncError(error.raw_os_error()))
    }

    fn cache(&self) -> u64 {
        self.cache
    }

    fn checksum(&self, cpu: Cpu, crc: u32, off: u64, len: u64) -> u32 {
        let mut buffer = std::vec![0; (len as usize).min(PIECE)];
        let (mut crc, mut done) = (crc, 0);
        while done < len {
            let piece = (len - done).min(PIECE as u64) as usize;
            self.read(off + done, &mut buffer[..piece]);
            crc = crc32c(cpu, crc, &buffer[..piece]);
            done += piece as u64;
        }
        crc
    }
}
