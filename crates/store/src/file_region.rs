//! A region in a file that this process maps: what the supervisor uses.

use crate::cpu::Cpu;
use crate::region::{File, MappedRegion, Region, SyncError};
use rustix::fs::{fallocate, fdatasync, fstat, ftruncate, FallocateFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::io;
use std::os::fd::OwnedFd;

const HOLE: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// The region does to the file itself what its mapping cannot.
const NOTHING: File =
    File { discard: |_, _| {}, reserve: |_, _| true, sync: |_, _| 0, expect: |_, _| {}, write: |_, _| 0 };

/// A file, mapped shared as a whole. Its holes take no room.
pub struct FileRegion {
    file: OwnedFd,
    mapped: MappedRegion,
}

impl FileRegion {
    /// Makes the file `len` bytes long, if it is shorter, and maps it for reading and writing.
    ///
    /// # Errors
    /// What the kernel says to ftruncate or mmap; file systems that cannot punch holes are refused.
    pub fn create(file: OwnedFd, len: u64) -> io::Result<FileRegion> {
        if (fstat(&file)?.st_size as u64) < len {
            ftruncate(&file, len)?;
        }
        FileRegion::map(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps an existing file for reading and writing.
    ///
    /// # Errors
    /// As for [`FileRegion::create`]; an empty file is `InvalidInput`.
    pub fn open(file: OwnedFd) -> io::Result<FileRegion> {
        FileRegion::map(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn map(file: OwnedFd, prot: ProtFlags) -> io::Result<FileRegion> {
        let len = fstat(&file)?.st_size as u64;
        if len == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is empty, so it is not a store"));
        }
        // Beyond the end there is nothing to discard: this only asks whether the file system can.
        fallocate(&file, HOLE, len.next_multiple_of(4096), 4096).map_err(|error| {
            let text = "the file system cannot punch holes; put the store on tmpfs, ext4, xfs or btrfs";
            io::Error::new(io::Error::from(error).kind(), text)
        })?;
        // SAFETY: a new mapping at an address of the kernel's choice; it is unmapped by `drop` only.
        let mapped = unsafe {
            let base =
                mmap(std::ptr::null_mut(), len as usize, prot, MapFlags::SHARED | MapFlags::NORESERVE, &file, 0)?;
            MappedRegion::new(base.cast(), len, NOTHING)
        };
        Ok(FileRegion { file, mapped })
    }
}

impl Drop for FileRegion {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no reference into it outlives `self`. An error would leave it mapped: harmless.
        let _ = unsafe { munmap(self.mapped.base().cast(), self.mapped.len() as usize) };
    }
}

impl Region for FileRegion {
    #[inline]
    fn len(&self) -> u64 {
        self.mapped.len()
    }

    #[inline]
    fn read(&self, off: u64, into: &mut [u8]) {
        self.mapped.read(off, into);
    }

    #[inline]
    fn write(&mut self, off: u64, bytes: &[u8]) {
        self.mapped.write(off, bytes);
    }

    #[inline]
    fn publish(&mut self, off: u64, value: u64) {
        self.mapped.publish(off, value);
    }

    #[inline]
    fn load(&self, off: u64) -> u64 {
        self.mapped.load(off)
    }

    fn discard(&mut self, off: u64, len: u64) {
        self.barrier();
        if fallocate(&self.file, HOLE, off, len).is_err() {
            // The bytes must read as zero all the same.
            (0..len / 4096).for_each(|page| self.mapped.write(off + page * 4096, &[0; 4096]));
        }
        self.barrier();
    }

    fn sync(&mut self, _off: u64, _len: u64) -> Result<(), SyncError> {
        self.barrier();
        fdatasync(&self.file).map_err(|error| SyncError(error.raw_os_error()))
    }

    #[inline]
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        self.mapped.copy(from, to, len);
    }

    #[inline]
    fn checksum(&self, cpu: Cpu, crc: u32, off: u64, len: u64) -> u32 {
        self.mapped.checksum(cpu, crc, off, len)
    }
}
