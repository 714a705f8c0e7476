//! Files without a name that nobody but the program has: a memfd, a file that was made without a name (O_TMPFILE), or one in memory that it has
//! unlinked and maps. The heaps of some garbage collectors lie there, and code that is written at one address and executed at another.
//!
//! Nobody else sees what is in them. So they go back to the commit as other memory does, and are made anew when everything has died. A page
//! may be mapped at several addresses; the store has it once, at a *key*: an address of its own, where no program has memory. What is
//! written through mappings is found like other written memory ([`views`]), what calls change ([`changes`]) is read from the file by the next
//! commit ([`saving`]).
//!
//! As soon as somebody else may have such a file, by a copy of the memory or by a descriptor, it is one like others: what is written there
//! stays written, whatever becomes of the program.

mod changes;
mod keeping;
mod mappings;
mod restoring;
mod saving;
mod views;

pub use changes::{after, bearing, before, makes, open_places};
pub use keeping::{disown_all, is_in_memory, is_usable};
pub use mappings::{content_changed, mapped, mapping, moved, unmapped, unmapping};
pub use restoring::{fill, load, map, open_again};
pub use saving::{follow, save};
pub use views::{each_part, forget as forget_views, key, key_of};

use crate::held_files;
use crate::state::{engine, Engine};
use crate::undo::Look;
use outlast_image::layout::{session, HELD_FILES, SESSION_BASE};
use outlast_image::own_file::OwnFile;

/// Keys: 16 TiB for each file, above all addresses of programs and below the end of what a store takes.
const KEYS: u64 = 1 << 56;
const KEYS_EACH: u64 = 1 << 44;

/// Which file is at each place, by serial number and inode: the descriptor, unlike the engine's memory, outlives the process, and so does the
/// session.
const AT_PLACES: *mut [[u64; 2]; HELD_FILES] = (SESSION_BASE + session::PENDING + 3136) as *mut _;

fn held(place: usize) -> [u64; 2] {
    // SAFETY: these words in the session are for this alone, here and below.
    unsafe { (&raw const (*AT_PLACES)[place]).read_volatile() }
}

fn note_held(place: usize, serial: u64, inode: u64) {
    unsafe { (&raw mut (*AT_PLACES)[place]).write_volatile([serial, inode]) }
}

/// Parts of a file that calls have changed since the last commit.
#[derive(Clone, Copy)]
struct Changed {
    parts: [(u64, u64); PARTS],
    count: usize,
}

const PARTS: usize = 8;

impl Changed {
    const NOTHING: Changed = Changed { parts: [(0, 0); PARTS], count: 0 };

    fn add(&mut self, from: u64, to: u64) {
        let is_near = |&(a, b): &(u64, u64)| from <= b && a <= to;
        if let Some(part) = self.parts[..self.count].iter_mut().find(|part| is_near(part)) {
            *part = (part.0.min(from), part.1.max(to));
        } else if self.count < PARTS {
            self.parts[self.count] = (from, to);
            self.count += 1;
        } else {
            let last = &mut self.parts[PARTS - 1];
            *last = (last.0.min(from), last.1.max(to));
        }
    }
}

/// A file, in the order of the engine's descriptors of held files, or none.
#[derive(Clone, Copy)]
struct File {
    /// As the next commit describes it; the serial number of none is 0.
    now: OwnFile,
    /// As the last commit did: another file where everything had died since.
    then: OwnFile,
    changed: Changed,
    is_described: bool,
}

impl File {
    const NONE: File = File {
        now: OwnFile { serial: 0, device: 0, inode: 0, size: 0 },
        then: OwnFile { serial: 0, device: 0, inode: 0, size: 0 },
        changed: Changed::NOTHING,
        is_described: true,
    };

    fn is_there(&self) -> bool {
        self.now.serial != 0
    }
}

/// All of them.
pub struct OwnFiles {
    files: [File; HELD_FILES],
    /// Is there any?
    any: bool,
    /// One that the last commit describes is none any more.
    is_one_less: bool,
}

impl OwnFiles {
    pub const NONE: OwnFiles = OwnFiles { files: [File::NONE; HELD_FILES], any: false, is_one_less: false };

    /// Is there any?
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.any
    }

    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let mut bits = 0u32;
        for (place, file) in self.files.iter().enumerate() {
            bits |= u32::from(file.is_there()) << place;
        }
        (0..HELD_FILES).filter(move |place| bits >> place & 1 != 0)
    }

    /// The place of a file, by what the map of the process says of it.
    fn find(&self, device: u64, inode: u64) -> Option<usize> {
        self.files.iter().position(|file| file.is_there() && (file.now.device, file.now.inode) == (device, inode))
    }
}

/// Does the map of the process mean such a file?
pub fn is_one(device: u64, inode: u64) -> bool {
    // SAFETY: a look at numbers.
    let own = unsafe { &engine().own_files };
    own.any && own.find(device, inode).is_some()
}

/// Device as the map of the process has it: major number in the upper half.
fn device_of(look: &Look) -> u64 {
    look.identity.device().rotate_left(32)
}

fn key_at(place: usize) -> u64 {
    KEYS + place as u64 * KEYS_EACH
}

/// The engine's descriptor of the file at a place.
fn descriptor(e: &Engine, place: usize) -> i32 {
    held_files::number(e.fds.own, place)
}

/// Has something changed since the commit that written pages do not tell?
pub fn are_disturbed(e: &Engine) -> bool {
    e.own_files.is_one_less
        || e.own_files.files.iter().any(|file| file.is_there() && (file.changed.count > 0 || !file.is_described))
}
