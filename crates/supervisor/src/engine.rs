//! The engine as the supervisor holds it: a sealed file in memory whose pages are mapped into the program as they are.

use crate::elf::{self, Layout};
use crate::error::Error;
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::io::{pwrite, Errno};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The engine's executable, as build.rs made it.
pub static ELF: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engine.elf"));

/// A mappable copy of the engine.
pub struct Engine {
    file: OwnedFd,
    layout: Layout,
}

impl Engine {
    /// Lays the embedded engine out page by page in a new sealed memfd.
    pub fn new() -> Result<Self, Error> {
        let layout = elf::parse(ELF)?;
        let file = create().map_err(|e| Error::Kernel("create a memfd for the engine", e))?;
        let mut length = 0;
        for (segment, offset) in placed(&layout) {
            // What lies between the bytes and the ends of their pages stays zero: the start of .bss is there.
            let inner = offset + (segment.vaddr - segment.start);
            write_all(file.as_fd(), &ELF[segment.file.clone()], inner)
                .map_err(|e| Error::Kernel("fill the engine's memfd", e))?;
            length = offset + (segment.file_end - segment.start);
        }
        ftruncate(&file, length).map_err(|e| Error::Kernel("size the engine's memfd", e))?;
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        fcntl_add_seals(&file, seals).map_err(|e| Error::Kernel("seal the engine's memfd", e))?;
        Ok(Self { file, layout })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where the engine starts to run.
    pub fn entry(&self) -> u64 {
        self.layout.entry
    }

    /// Its segments, each with the offset of its first page in [`Engine::file`].
    pub fn segments(&self) -> impl Iterator<Item = (&elf::Segment, u64)> {
        placed(&self.layout)
    }
}

/// Segments follow one another in the file, page aligned.
fn placed(layout: &Layout) -> impl Iterator<Item = (&elf::Segment, u64)> {
    layout.segments.iter().scan(0, |next, segment| {
        let offset = *next;
        *next += segment.file_end - segment.start;
        Some((segment, offset))
    })
}

/// A kernel may insist that memfds say they are not executable (`vm.memfd_noexec`); mapping them so is still allowed.
fn create() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"outlast-engine", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"outlast-engine", flags),
        other => other,
    }
}

fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let n = pwrite(file, bytes, offset)?;
        bytes = &bytes[n..];
        offset += n as u64;
    }
    Ok(())
}
