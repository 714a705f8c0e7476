//! Whether a file is the program's alone, so that nobody notices when what was written there is taken back.
//!
//! The kernel answers that for files: it gives a write lease only to who has the file open alone. For open files that came
//! from somebody else, or went to somebody else, only the engine can tell: it keeps a list, which is part of a commit.

use super::look::{self, Identity};
use crate::descriptors::for_each_open;
use crate::signals::SIGENGINE;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;

const F_SETOWN: u64 = 8;
const F_GETOWN: u64 = 9;
const F_SETSIG: u64 = 10;
const F_GETSIG: u64 = 11;
const F_SETLEASE: u64 = 1024;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;

const MOST: usize = 64;

/// Files whose open descriptions the program shares with others.
pub struct Shared {
    files: [Identity; MOST],
    /// More than `MOST`: all are.
    count: usize,
    /// Not as in the store.
    pub dirty: bool,
}

impl Shared {
    pub const fn new() -> Shared {
        Shared { files: [Identity::NONE; MOST], count: 0, dirty: false }
    }

    fn add(&mut self, file: Identity) {
        if self.has(&file) {
            return;
        }
        if let Some(place) = self.files.get_mut(self.count) {
            *place = file;
        }
        self.count += 1;
        self.dirty = true;
    }

    fn has(&self, file: &Identity) -> bool {
        self.count > MOST || self.files[..self.count].contains(file)
    }

    /// The object of a commit.
    pub fn bytes(&self) -> &[u8] {
        // One too many is as good as any number.
        bytemuck::cast_slice(&self.files[..self.count.min(MOST)])
    }

    /// Reads back what a commit holds.
    pub fn load(&mut self, bytes: &[u8]) {
        *self = Shared::new();
        for file in bytes.chunks_exact(size_of::<Identity>()) {
            self.add(bytemuck::pod_read_unaligned(file));
        }
        // A full list may be one that overflowed.
        if self.count == MOST {
            self.count += 1;
        }
        self.dirty = false;
    }
}

/// Reads back the list of the commit.
pub fn load(e: &mut Engine) {
    let buf = crate::scratch::object_buffer();
    let n = e.store().object(object::SHARED, 0, buf).unwrap_or(0);
    e.undo.shared.load(&buf[..n.min(MOST * size_of::<Identity>())]);
}

/// Somebody else has, or gets, what is open as `fd`.
pub fn share(e: &mut Engine, fd: i32) {
    // Also where a commit stands before every output: that may change.
    if e.fds.kind(fd) == kind::REGULAR {
        if let Ok(look) = look::of(fd) {
            e.undo.shared.add(look.identity);
        }
    }
}

/// Somebody else has, or gets, all that is open.
pub fn share_all(e: &mut Engine) {
    for fd in 0..e.fds.end() {
        if e.fds.is_open(fd) {
            share(e, fd);
        }
    }
}

/// Is the file that is open as `fd` the program's alone?
pub fn is_alone(e: &Engine, fd: i32, file: &Identity) -> bool {
    // Having it open twice looks the same to the kernel as somebody else who has it open.
    !e.undo.shared.has(file) && (may_lease(fd) || how_often(file) > 1)
}

/// Takes a lease and gives it back. Whoever opens the file in between knocks at the engine, which is no harm.
fn may_lease(fd: i32) -> bool {
    // SAFETY: fcntl commands without pointers, on a file that is the program's; owner and signal are set back.
    unsafe {
        let (owner, signal) = (syscall!(nr::FCNTL, fd, F_GETOWN), syscall!(nr::FCNTL, fd, F_GETSIG));
        syscall!(nr::FCNTL, fd, F_SETSIG, SIGENGINE);
        let taken = syscall!(nr::FCNTL, fd, F_SETLEASE, F_WRLCK) == 0;
        if taken {
            syscall!(nr::FCNTL, fd, F_SETLEASE, F_UNLCK);
        }
        syscall!(nr::FCNTL, fd, F_SETSIG, if err::is(signal) { 0 } else { signal });
        syscall!(nr::FCNTL, fd, F_SETOWN, owner);
        taken
    }
}

/// How many descriptors of this process have the file open.
fn how_often(file: &Identity) -> usize {
    let mut n = 0;
    for_each_open(|fd| n += look::of(fd).is_ok_and(|look| look.identity == *file) as usize);
    n
}
