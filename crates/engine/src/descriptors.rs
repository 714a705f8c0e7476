//! What the engine knows of the program's descriptors: which are open, what they are, whose offset is noted.

use crate::dispatch::Call;
use crate::fresh;
use crate::interests;
use crate::noted::is_stream;
use crate::proc;
use crate::sys::{err, nr, syscall};
use crate::unnamed::{watches, Origin, Origins};
use outlast_image::descriptor::{descriptor_kind as kind, unnamed_kind};
use outlast_image::layout::{ENGINE_FDS, HIDING_FDS};

/// Descriptors whose kind is cached; higher ones are asked for each time.
pub const CACHED: usize = 4096;
/// Highest descriptor number that rollback knows of.
pub const HIGHEST: usize = 65536;

/// The table.
pub struct Descriptors {
    open: [u64; HIGHEST / 64],
    /// A kind, and the bits below. The gate looks here, too.
    pub kinds: [u8; CACHED],
    /// The commit since which the offset is in the journal.
    noted: [u64; CACHED],
    /// What tells sources of input apart; 0: not asked yet, 1: it is none whose input is noted.
    sources: [u64; CACHED],
    /// Other processes of the tree may have the same open file. Higher ones are taken to be such.
    shared: [u64; CACHED / 64],
    /// There are, or were, others.
    pub has_kin: bool,
    /// Length of `open` in words that matter.
    words: usize,
    /// Changed since the last commit.
    pub dirty: bool,
    /// The first of the engine's own.
    pub own: i32,
    /// Closed by the program since the last commit, but kept: hidden number and the number it had.
    delayed: [(i32, i32); DELAYED],
    delayed_count: usize,
    /// Opened, closed or moved since the last commit, each once.
    touched: [i32; TOUCHED],
    touched_count: usize,
    /// More were than are remembered.
    were_many_touched: bool,
    /// Opened just now.
    pub fresh: fresh::Table,
    pub origins: Origins,
}

/// Descriptors whose change is remembered one by one; more than that and all are looked at.
const TOUCHED: usize = 128;

/// How many closes can be delayed until the next commit.
pub const DELAYED: usize = 48;

/// Beside the kind in the cache: what is written there may end up in the program's own memory.
const IS_MEMORY: u8 = 0x80;

/// Beside the kind in the cache: what is read there is copied to the program's memory, whose pages are not pinned.
pub const COPIES: u8 = 0x40;

const PROC_SUPER_MAGIC: u64 = 0x9fa0;
/// File systems that copy but for O_DIRECT: ext4, XFS, Btrfs, F2FS, tmpfs, SquashFS. Others may pin whatever they like.
const COPYING: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x7371_7368];
const F_GETFD: u64 = 1;
const F_GETFL: u64 = 3;
const F_SETFL: u64 = 4;
/// FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC.
const MARKING: [u64; 4] = [0x5421, 0x5450, 0x5451, 0x5452];
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
    pub const fn new() -> Self {
        Descriptors {
            open: [0; HIGHEST / 64],
            kinds: [0; CACHED],
            noted: [0; CACHED],
            sources: [0; CACHED],
            shared: [0; CACHED / 64],
            has_kin: false,
            words: 0,
            dirty: false,
            own: 0,
            delayed: [(0, 0); DELAYED],
            delayed_count: 0,
            touched: [0; TOUCHED],
            touched_count: 0,
            were_many_touched: false,
            fresh: fresh::Table::NONE,
            origins: Origins::new(),
        }
    }

    fn touch(&mut self, fd: i32) {
        if self.touched[..self.touched_count].contains(&fd) {
            return;
        }
        self.were_many_touched |= self.touched_count == TOUCHED;
        if self.touched_count < TOUCHED {
            self.touched[self.touched_count] = fd;
            self.touched_count += 1;
        }
    }

    /// What a commit says of a descriptor has changed.
    pub fn changed(&mut self, fd: i32) {
        if self.is_open(fd) {
            self.dirty = true;
            self.touch(fd);
        }
    }

    /// Its flags change.
    pub fn marked(&mut self, fd: i32) {
        self.fresh.forget(fd);
        self.changed(fd);
    }

    /// The same for all descriptors of the file that is open as `fd`, and of its other end: the size of a pipe is that of both.
    pub fn file_marked(&mut self, fd: i32) {
        self.marked(fd);
        let Origin { file, peer, .. } = self.origins.of(fd);
        for other in (0..self.end()).filter(|_| file != 0) {
            let its = self.origins.of(other).file;
            if its == file || its == peer && peer != 0 {
                self.marked(other);
            }
        }
    }

    /// A descriptor that changed since the last commit; each once, until there is none.
    pub fn next_touched(&mut self) -> Option<i32> {
        self.touched_count = self.touched_count.checked_sub(1)?;
        Some(self.touched[self.touched_count])
    }

    /// Have more changed since the last commit than are remembered? Any of them may be one then. Asked once.
    pub fn take_many_touched(&mut self) -> bool {
        let were_many = core::mem::take(&mut self.were_many_touched);
        if were_many {
            self.touched_count = 0;
        }
        were_many
    }

    /// Is the number the engine's? One of its own, or one that hides what the program closed.
    #[inline]
    pub fn is_own(&self, fd: i32) -> bool {
        self.is_engine(fd) || self.delayed[..self.delayed_count].iter().any(|d| d.0 == fd)
    }

    /// Is it one of the engine's own?
    #[inline]
    pub fn is_engine(&self, fd: i32) -> bool {
        (self.own..self.own + ENGINE_FDS).contains(&fd)
    }

    /// May it hide what the program closed?
    pub fn may_hide(&self, fd: i32) -> bool {
        let first = self.own + ENGINE_FDS;
        (first..first + HIDING_FDS).contains(&fd)
    }

    pub fn is_open(&self, fd: i32) -> bool {
        (fd as usize) < HIGHEST && fd >= 0 && self.open[fd as usize / 64] >> (fd % 64) & 1 != 0
    }

    /// A descriptor appeared.
    pub fn opened(&mut self, fd: i64) {
        if fd < 0 || fd as usize >= HIGHEST || self.is_own(fd as i32) {
            return;
        }
        let fd = fd as usize;
        self.open[fd / 64] |= 1 << (fd % 64);
        self.words = self.words.max(fd / 64 + 1);
        self.dirty = true;
        self.touch(fd as i32);
        self.fresh.forget(fd as i32);
        self.origins.opened(fd);
        if fd < CACHED {
            self.kinds[fd] = 0;
            self.noted[fd] = 0;
            self.sources[fd] = 0;
            self.shared[fd / 64] &= !(1 << (fd % 64));
        }
    }

    /// One appeared that a call opened by this path, with these flags.
    pub fn opened_by(&mut self, fd: i64, path: u64, flags: u64) {
        self.opened(fd);
        if self.is_open(fd as i32) && (fd as usize) < CACHED {
            if let Some(old) = self.fresh.opened(fd as i32, path, flags) {
                self.touch(old);
            }
        }
    }

    /// One appeared that is another number of the same open file.
    pub fn opened_as(&mut self, fd: i64, of: i32) {
        self.opened(fd);
        self.origins.opened_as(fd, of);
        if (0..CACHED as i64).contains(&fd) && self.is_shared(of) {
            self.shared[fd as usize / 64] |= 1 << (fd % 64);
        }
    }

    /// All files that are open now others may have as well.
    pub fn share_all(&mut self) {
        self.has_kin = true;
        self.shared.copy_from_slice(&self.open[..CACHED / 64]);
    }

    /// May another process of the tree have the same open file?
    pub fn is_shared(&self, fd: i32) -> bool {
        self.shared.get(fd as usize / 64).is_none_or(|word| word >> (fd % 64) & 1 != 0)
    }

    /// A call returned `r`, of which it is not known whether it is a descriptor: it is one, and new, if it is open and was not
    /// before.
    pub fn returned(&mut self, r: i64) {
        let is_new = (0..HIGHEST as i64).contains(&r) && !self.is_open(r as i32) && !self.is_own(r as i32);
        // SAFETY: F_GETFD has no effect.
        if is_new && !err::is(unsafe { syscall!(nr::FCNTL, r, F_GETFD) }) {
            self.opened(r);
        }
    }

    /// A descriptor went away.
    pub fn closed(&mut self, fd: i32) {
        if fd >= 0 && (fd as usize) < HIGHEST {
            self.open[fd as usize / 64] &= !(1 << (fd % 64));
            self.dirty = true;
            self.touch(fd);
            self.fresh.forget(fd);
            interests::closed(fd);
            self.closed_watches(fd);
            if (fd as usize) < CACHED {
                self.kinds[fd as usize] = 0;
                self.noted[fd as usize] = 0;
                self.sources[fd as usize] = 0;
            }
        }
    }

    /// Was it the last one of an inotify?
    fn closed_watches(&mut self, fd: i32) {
        let origin = self.origins.of(fd);
        let is_other = |other: i32| self.is_open(other) && self.origins.of(other).file == origin.file;
        if origin.kind == unnamed_kind::WATCHES && !(0..self.end()).any(is_other) {
            watches::closed(origin.file);
        }
    }

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

    /// The call is about to be issued, and may change what files or descriptors are marked with.
    #[inline]
    pub fn note_marks(&mut self, call: &Call) {
        match call.nr {
            nr::FCNTL if call.args[1] == F_SETFL => {
                self.forget_kinds();
                self.file_marked(call.fd());
            }
            nr::IOCTL if MARKING.contains(&call.args[1]) => self.file_marked(call.fd()),
            _ => {}
        }
    }

    /// The flags of some file are about to change, and so for all descriptors of it.
    pub fn forget_kinds(&mut self) {
        self.kinds = [0; CACHED];
        self.sources = [0; CACHED];
        while let Some(fd) = self.fresh.take() {
            self.touch(fd);
        }
    }

    /// A commit has described all. Who has been fresh for long is to be described anew.
    pub fn grow_up(&mut self) {
        while let Some(fd) = self.fresh.grow_up() {
            self.touch(fd);
        }
    }

    /// Has its offset not moved since it was opened?
    pub fn is_unmoved(&self, fd: i32) -> bool {
        self.noted.get(fd as usize) == Some(&0)
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

    /// Must the offset of `fd` be noted in the journal of commit `seq`? True once for each commit.
    pub fn note_offset(&mut self, fd: i32, seq: u64) -> bool {
        match self.noted.get_mut(fd as usize) {
            Some(n) if *n == seq + 1 => false,
            Some(n) => {
                *n = seq + 1;
                self.touch(fd);
                true
            }
            None => true,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.open = [0; HIGHEST / 64];
        self.kinds = [0; CACHED];
        self.noted = [0; CACHED];
        self.sources = [0; CACHED];
        self.shared = [0; CACHED / 64];
        self.has_kin = false;
        self.words = 0;
        self.delayed_count = 0;
        self.fresh = fresh::Table::NONE;
    }

    /// Fills the table from the kernel's.
    pub fn read(&mut self) {
        self.clear();
        for_each_open(|fd| self.opened(fd as i64));
        self.dirty = true;
    }

    /// Above every open one.
    pub fn end(&self) -> i32 {
        (self.words * 64) as i32
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open[..self.words].iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bitmap of open descriptors: the object of a commit.
    pub fn bitmap(&self) -> &[u8] {
        bytemuck::cast_slice(&self.open[..self.words])
    }

    /// A number that can hide the next delayed close, if there is room for one.
    pub fn hiding_place(&self) -> Option<i32> {
        let first = self.own + ENGINE_FDS;
        (first..first + HIDING_FDS).find(|&fd| self.delayed_count < DELAYED && !self.is_open(fd) && !self.is_own(fd))
    }

    /// `fd` now lives on as `hidden`.
    pub fn delay(&mut self, fd: i32, hidden: i32) {
        self.delayed[self.delayed_count] = (hidden, fd);
        self.delayed_count += 1;
    }

    /// Really closes what the program closed before the commit that was just published.
    pub fn close_delayed(&mut self) {
        for i in 0..self.delayed_count {
            // SAFETY: the hidden number is the engine's.
            unsafe { syscall!(nr::CLOSE, self.delayed[i].0) };
        }
        self.delayed_count = 0;
    }
}

/// The descriptor that an entry of /proc/self/fd is named after.
pub fn number_of(name: &[u8]) -> Option<i32> {
    let digits = name.iter().map(|c| (*c as char).to_digit(10));
    let add = |n: i32, digit: Option<u32>| n.checked_mul(10)?.checked_add(digit? as i32);
    (!name.is_empty()).then_some(0).and_then(|zero| digits.into_iter().try_fold(zero, add))
}

/// Calls `f` for every open descriptor of the process.
pub fn for_each_open(mut f: impl FnMut(i32)) {
    let mut buf = [0u8; 4096];
    // SAFETY: getdents64 writes into the buffer; records are checked against its length.
    unsafe {
        let Ok(dir) = proc::open(c"/proc/self/fd", 0o200000) else { return };
        loop {
            let n = syscall!(nr::GETDENTS64, dir.fd, buf.as_mut_ptr(), buf.len());
            if n <= 0 {
                break;
            }
            let mut at = 0usize;
            while at + 19 < n as usize {
                let len = u16::from_le_bytes([buf[at + 16], buf[at + 17]]) as usize;
                let name = buf[at + 19..n as usize].split(|&b| b == 0).next().unwrap_or(&[]);
                if let Some(fd) = number_of(name).filter(|&fd| fd as i64 != dir.fd) {
                    f(fd);
                }
                at += len.max(1);
            }
        }
    }
}
