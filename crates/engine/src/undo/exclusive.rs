//! Whether a file is the program's alone, so that nobody notices when what was written there is taken back.
//!
//! The kernel answers that for files (see [`lease`]). For open files that came
//! from somebody else, or went to somebody else, only the engine can tell: it keeps a list, which is part of a commit.

use super::lease;
use super::look::{self, Identity};
use crate::descriptors::for_each_open;
use crate::replies;
use crate::state::{object, Engine};
use outlast_image::descriptor::descriptor_kind as kind;

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
    match e.fds.kind(fd) {
        kind::REGULAR => {
            if let Ok(look) = look::of(fd) {
                e.undo.shared.add(look.identity);
            }
        }
        kind::SOCKET => replies::share(e, fd),
        _ => {}
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

/// Has somebody else an open description of the program's file?
pub fn is_shared(e: &Engine, file: &Identity) -> bool {
    e.undo.shared.has(file)
}

/// Is the file that is open as `fd` the program's alone?
pub fn is_alone(e: &Engine, fd: i32, file: &Identity) -> bool {
    // Having it open twice looks the same to the kernel as somebody else who has it open.
    !is_shared(e, file) && (lease::is_open_once(fd) || how_often(e, file) > 1)
}

/// How many of the program's descriptors have the file open.
fn how_often(e: &Engine, file: &Identity) -> usize {
    let mut n = 0;
    let is_it = |fd| !e.fds.is_engine(fd) && look::of(fd).is_ok_and(|look| look.identity == *file);
    for_each_open(|fd| n += is_it(fd) as usize);
    n
}
