//! What the engine knows of the program's descriptors: which are open, what they are, whose offset is noted.

mod changes;
mod delayed;
mod kinds;
mod listing;

pub use delayed::DELAYED;
pub use kinds::{classify, source_by, COPIES};
pub use listing::{for_each_open, number_of};

use crate::fresh;
use crate::interests;
use crate::sys::{err, nr, syscall};
use crate::unnamed::{watches, Origins};
use changes::TOUCHED;
use outlast_image::descriptor::unnamed_kind;
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

const F_GETFD: u64 = 1;

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

    /// Has its offset not moved since it was opened?
    pub fn is_unmoved(&self, fd: i32) -> bool {
        self.noted.get(fd as usize) == Some(&0)
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
}
