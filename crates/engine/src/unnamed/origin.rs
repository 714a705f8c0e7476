//! Where descriptors come from, as far as that tells what they are: which are of the same open file, and which pipes and pairs of sockets the
//! program made itself.

use crate::descriptors::CACHED;
use outlast_image::descriptor::{unnamed_kind as kind, Descriptor, LOST_WATCH};

/// Of one descriptor.
#[derive(Clone, Copy)]
pub struct Origin {
    /// The number of the open file; 0: it is not known.
    pub file: u32,
    /// That of the other end.
    pub peer: u32,
    /// One of [`kind`]; of a pipe or socket only if the program made it itself.
    pub kind: u32,
    /// An eventfd of which reads take one at a time.
    pub is_semaphore: bool,
    /// Of an inotify: the number that it gave last.
    pub last: i32,
    /// Not all that it watches is known.
    pub lost: bool,
}

const UNKNOWN: Origin = Origin { file: 0, peer: 0, kind: kind::NONE, is_semaphore: false, last: 0, lost: false };

/// Of all.
pub struct Origins {
    all: [Origin; CACHED],
    /// The number that was given last.
    last: u32,
}

impl Origin {
    /// Is it an end of something that has two?
    pub fn is_stream(&self) -> bool {
        matches!(self.kind, kind::PIPE | kind::PAIR)
    }
}

impl Origins {
    pub const fn new() -> Origins {
        Origins { all: [UNKNOWN; CACHED], last: 0 }
    }

    pub fn of(&self, fd: i32) -> Origin {
        self.all.get(fd as usize).copied().unwrap_or(UNKNOWN)
    }

    /// A file was opened.
    pub fn opened(&mut self, fd: usize) {
        self.last = self.last.wrapping_add(1).max(1);
        if let Some(place) = self.all.get_mut(fd) {
            *place = Origin { file: self.last, ..UNKNOWN };
        }
    }

    /// Another descriptor of the same file.
    pub fn opened_as(&mut self, fd: i64, of: i32) {
        let origin = self.of(of);
        if let Some(place) = self.all.get_mut(fd as usize).filter(|_| origin.file != 0) {
            *place = origin;
        }
    }

    /// Two that were just opened are the ends of one thing.
    pub fn pair(&mut self, x: i32, y: i32, kind: u32) {
        let files = [self.of(x).file, self.of(y).file];
        for (fd, peer) in [(x, files[1]), (y, files[0])] {
            if let Some(place) = self.all.get_mut(fd as usize) {
                (place.peer, place.kind) = (peer, kind);
            }
        }
    }

    /// An eventfd of that kind was opened.
    pub fn is_semaphore(&mut self, fd: i64) {
        if let Some(place) = self.all.get_mut(fd as usize) {
            place.is_semaphore = true;
        }
    }

    /// Calls `f` for all descriptors of the same file.
    fn each_of(&mut self, fd: i32, f: impl Fn(&mut Origin)) {
        let file = self.of(fd).file;
        self.all.iter_mut().filter(|one| one.file == file && file != 0).for_each(f);
    }

    /// An inotify has given this number to a watch.
    pub fn watches_up_to(&mut self, fd: i32, number: i32) {
        self.each_of(fd, |one| one.last = one.last.max(number));
    }

    /// One of its watches is not known.
    pub fn lost_watch(&mut self, fd: i32) {
        self.each_of(fd, |one| one.lost = true);
    }

    /// It is known what it is.
    pub fn is(&mut self, fd: i32, kind: u32) {
        if let Some(place) = self.all.get_mut(fd as usize) {
            place.kind = kind;
        }
    }

    /// As a commit says.
    pub fn load(&mut self, fd: i32, d: &Descriptor, what: u64) {
        let is_semaphore = d.unnamed == kind::COUNTER && what != 0;
        let (last, lost) = if d.unnamed == kind::WATCHES { (what as i32, what & LOST_WATCH != 0) } else { (0, false) };
        self.last = self.last.max(d.file).max(d.peer);
        if let Some(place) = self.all.get_mut(fd as usize) {
            *place = Origin { file: d.file, peer: d.peer, kind: d.unnamed, is_semaphore, last, lost };
        }
    }
}
