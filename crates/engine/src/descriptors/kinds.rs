//! What descriptors refer to: asked for once, and kept until they are closed or marked otherwise.

use super::{Descriptors, CACHED};
use crate::noted::is_stream;
use crate::proc;
use crate::sys::{nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;

/// Beside the kind in the cache: what is written there may end up in the program's own memory.
const IS_MEMORY: u8 = 0x80;

/// Beside the kind in the cache: what is read there is copied to the program's memory, whose pages are not pinned.
pub const COPIES: u8 = 0x40;

const PROC_SUPER_MAGIC: u64 = 0x9fa0;
/// File systems that copy but for O_DIRECT: ext4, XFS, Btrfs, F2FS, tmpfs, SquashFS. Others may pin whatever they like.
const COPYING: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x7371_7368];
const F_GETFL: u64 = 3;
const O_DIRECT: u64 = 0o40000;

/// The bits for a regular file.
fn bits_of(fd: i32) -> u8 {
    let mut fs = [0u64; 15];
    // SAFETY: fstatfs writes 120 bytes; F_GETFL has no effect.
    let (r, flags) = unsafe { (syscall!(nr::FSTATFS, fd, fs.as_mut_ptr()), syscall!(nr::FCNTL, fd, F_GETFL)) };
    match fs[0] {
        _ if r != 0 || flags < 0 => 0,
        PROC_SUPER_MAGIC if is_memory(fd) => IS_MEMORY,
        system if COPYING.contains(&system) && flags as u64 & O_DIRECT == 0 => COPIES,
        _ => 0,
    }
}

/// Is a file of /proc the memory of a process? Its name and size are empty in `fstat`, so it is asked for its name.
fn is_memory(fd: i32) -> bool {
    proc::link(fd, &mut [0; 64]).ends_with(b"/mem")
}

/// Kind by `st_mode`; terminals are told from other character devices by TCGETS.
pub fn classify(fd: i32) -> u32 {
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes, TCGETS 36.
    unsafe {
        if syscall!(nr::FSTAT, fd, st.as_mut_ptr()) < 0 {
            return kind::UNKNOWN;
        }
        match (st[3] as u32) & 0o170000 {
            0o100000 => kind::REGULAR,
            0o040000 => kind::DIRECTORY,
            0o060000 => kind::BLOCK,
            0o010000 => kind::PIPE,
            0o140000 => kind::SOCKET,
            0o020000 => {
                let mut termios = [0u64; 8];
                if syscall!(nr::IOCTL, fd, 0x5401, termios.as_mut_ptr()) == 0 {
                    kind::TERMINAL
                } else {
                    kind::CHARACTER
                }
            }
            _ => kind::ANONYMOUS,
        }
    }
}

const NO_SOURCE: u64 = 1;

/// What tells a stream from others, by its device and inode. FNV-1a of the two words; never one of the two numbers that mean something
/// else.
pub fn source_by(dev: u64, inode: u64) -> u64 {
    let mix = |h: u64, word: u64| (h ^ word).wrapping_mul(0x100_0000_01b3);
    mix(mix(0xcbf2_9ce4_8422_2325, dev), inode) | 1 << 63
}

/// Device and inode of a stream: a pipe without packets, a stream socket, a terminal.
fn source_of(fd: i32, kind: u32) -> Option<u64> {
    let mut st = [0u64; 18];
    // SAFETY: F_GETFL has no effect; fstat writes 144 bytes.
    let (flags, r) = unsafe { (syscall!(nr::FCNTL, fd, F_GETFL), syscall!(nr::FSTAT, fd, st.as_mut_ptr())) };
    let is_stream = match kind {
        kind::PIPE => flags >= 0 && flags as u64 & O_DIRECT == 0,
        kind::SOCKET => is_stream(fd),
        kind::TERMINAL => true,
        _ => false,
    };
    (is_stream && r == 0).then(|| source_by(st[0], st[1]))
}

impl Descriptors {
    /// What `fd` refers to.
    #[inline]
    pub fn kind(&mut self, fd: i32) -> u32 {
        match self.kinds.get(fd as usize) {
            Some(&k) if k != 0 => (k & !(IS_MEMORY | COPIES)) as u32,
            _ => {
                let mount = self.fresh.get(fd).map(|fresh| fresh.mount);
                let k = if mount.is_some() { kind::REGULAR } else { classify(fd) };
                if fd >= 0 && (fd as usize) < CACHED {
                    self.kinds[fd as usize] = k as u8 | if k == kind::REGULAR { self.bits(fd, mount) } else { 0 };
                }
                k
            }
        }
    }

    /// The bits for a regular file, on this mount if that is known.
    fn bits(&mut self, fd: i32, mount: Option<u64>) -> u8 {
        // One that was just opened is so without O_DIRECT.
        if mount.is_some_and(|mount| self.fresh.copies(mount)) {
            return COPIES;
        }
        let bits = bits_of(fd);
        if let Some(mount) = mount.filter(|_| bits == COPIES) {
            self.fresh.note_copying(mount);
        }
        bits
    }

    /// May a write there change the program's own memory?
    pub fn is_memory(&mut self, fd: i32) -> bool {
        self.kind(fd);
        self.kinds.get(fd as usize).is_none_or(|k| k & IS_MEMORY != 0)
    }

    /// Is what is read there copied?
    pub fn copies(&mut self, fd: i32) -> bool {
        self.kind(fd);
        self.kinds.get(fd as usize).is_some_and(|k| k & COPIES != 0)
    }

    /// What tells the stream that `fd` reads from apart from all others, as long as it is open; `None`: it is no stream.
    #[inline]
    pub fn source(&mut self, fd: i32) -> Option<u64> {
        let known = self.sources.get(fd as usize).copied().unwrap_or(0);
        let source = if known != 0 { known } else { source_of(fd, self.kind(fd)).unwrap_or(NO_SOURCE) };
        if let Some(place) = self.sources.get_mut(fd as usize) {
            *place = source;
        }
        (source != NO_SOURCE).then_some(source)
    }

    /// The flags of some file are about to change, and so for all descriptors of it.
    pub fn forget_kinds(&mut self) {
        self.kinds = [0; CACHED];
        self.sources = [0; CACHED];
        while let Some(fd) = self.fresh.take() {
            self.touch(fd);
        }
    }
}
