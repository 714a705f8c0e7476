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
mod restoring;
mod saving;
mod views;

pub use changes::{after, bearing, before, makes, open_places};
pub use restoring::{fill, load, map, open_again};
pub use saving::{follow, save};
pub use views::{each_part, forget as forget_views, key, key_of};

use crate::control::degrade;
use crate::held_files;
use crate::proc;
use crate::state::{engine, Engine};
use crate::sys::{err, nr, syscall, tsc};
use crate::tracker::Track;
use crate::undo::{self, look_at, Look};
use outlast_image::degradation::Degradation;
use outlast_image::layout::{session, HELD_FILES, SESSION_BASE};
use outlast_image::own_file::OwnFile;

const O_RDWR: u64 = 2;
const O_ACCMODE: i64 = 3;
const O_CLOEXEC: u64 = 0o2000000;
const F_GETFL: u64 = 3;
const F_GET_SEALS: u64 = 1034;
/// Seals that change nothing of what is done here: against further ones, and against a change of the mode.
const HARMLESS_SEALS: i64 = 0x01 | 0x20;
const TMPFS_MAGIC: u64 = 0x0102_1994;
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;
/// Places that are left to files that are mapped.
const RESERVED: usize = 4;
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

/// The program is about to map a file, shared. Is it one of these from now on? What is in it has to be committed before anything can be written
/// there.
pub fn mapping(e: &mut Engine, fd: i32) -> bool {
    let Some(look) = look_at(fd).ok().filter(|look| look.is_regular() && look.links == 0) else { return false };
    match e.own_files.find(device_of(&look), look.identity.inode()) {
        None => adopt(e, fd, &look),
        // Who tells of written pages may not know them there.
        Some(place) if !is_usable(fd, &[TMPFS_MAGIC]) => {
            disown(e, place);
            false
        }
        Some(_) => false,
    }
}

/// The program has mapped `fd`, shared. Is it one of these?
pub fn mapped(e: &mut Engine, fd: i32, (start, end): (u64, u64), offset: u64) -> bool {
    if !e.own_files.any {
        return false;
    }
    let Some(look) = look_at(fd).ok().filter(|look| look.links == 0) else { return false };
    let Some(place) = e.own_files.find(device_of(&look), look.identity.inode()) else { return false };
    let fits = offset.checked_add(end - start).is_some_and(|end| end <= KEYS_EACH);
    if !fits || !views::put(start, end, key_at(place) + offset) {
        disown(e, place);
        return false;
    }
    true
}

/// A call of the program's has made a file without a name, and opened it.
fn made(e: &mut Engine, fd: i32) {
    let Some(look) = look_at(fd).ok().filter(|look| look.is_regular() && look.links == 0) else { return };
    if e.held.room() > RESERVED && is_usable(fd, &[]) {
        keep(e, fd, &look);
    }
}

/// Makes a file one of these, if nobody else has it and nothing of it is mapped yet.
fn adopt(e: &mut Engine, fd: i32, look: &Look) -> bool {
    let is_free = !undo::is_shared(e, &look.identity) && held_files::extent(e, &look.identity).is_none();
    // Of a memfd the kernel counts all descriptors but the first one.
    let is_alone = || {
        undo::is_open_once(fd)
            || proc::open_again(fd, O_RDWR).is_ok_and(|another| undo::is_open_once(another.fd as i32))
    };
    is_usable(fd, &[TMPFS_MAGIC]) && is_free && is_alone() && keep(e, fd, look)
}

/// Can what is in the file be read and written, on one of these file systems, or on any but that of huge pages?
fn is_usable(fd: i32, systems: &[u64]) -> bool {
    let mut fs = [0u64; 15];
    // SAFETY: fstatfs writes 120 bytes; the others have no effect.
    unsafe {
        syscall!(nr::FSTATFS, fd, fs.as_mut_ptr()) == 0
            && (systems.contains(&fs[0]) || systems.is_empty() && fs[0] != HUGETLBFS_MAGIC)
            && syscall!(nr::FCNTL, fd, F_GETFL) & O_ACCMODE == O_RDWR as i64
            && syscall!(nr::FCNTL, fd, F_GET_SEALS).max(0) & !HARMLESS_SEALS == 0
    }
}

/// From now on the file is one of these.
fn keep(e: &mut Engine, fd: i32, look: &Look) -> bool {
    // An offset of its own, which the engine may move: that of the program's descriptor is the program's.
    let Ok(own) = proc::open_again(fd, O_RDWR) else { return false };
    let Some(place) = held_files::hold_unlocked(e, look, fd) else { return false };
    // SAFETY: the number is the engine's, and was a copy of the program's descriptor.
    if err::is(unsafe { syscall!(nr::DUP3, own.fd, descriptor(e, place), O_CLOEXEC) }) {
        return false;
    }
    let now = OwnFile { serial: tsc() | 1, device: device_of(look), inode: look.identity.inode(), size: look.size };
    note_held(place, now.serial, now.inode);
    let mut changed = Changed::NOTHING;
    changed.add(0, KEYS_EACH);
    e.own_files.files[place] = File { now, then: OwnFile::default(), changed, is_described: false };
    e.own_files.any = true;
    // Whether it is still in use is asked where what is mapped is looked at.
    e.maps_dirty = true;
    true
}

/// Somebody else may have the file: what is in it is not committed any more.
fn disown(e: &mut Engine, place: usize) {
    if let Ok(look) = look_at(descriptor(e, place)) {
        // It is never to become one again: of the first descriptor of a memfd the kernel does not tell who else has it.
        undo::is_shared_from_now_on(e, look.identity);
    }
    release(e, place);
    let mut was_mapped = false;
    let (low, high) = (key_at(place), key_at(place) + KEYS_EACH);
    while let Some((start, end)) = views::take(low, high) {
        e.tracker.open(start, end);
        e.tracker.leave(start, end);
        e.tracker.cover_again(start, end);
        was_mapped = true;
    }
    e.maps_dirty = true;
    if was_mapped {
        degrade(Degradation::SharedMapping);
    }
}

/// The file at a place is none of these any more.
fn release(e: &mut Engine, place: usize) {
    e.own_files.files[place] = File::NONE;
    e.own_files.any = e.own_files.places().next().is_some();
    e.own_files.is_one_less = true;
    e.drop_range(key_at(place), key_at(place) + KEYS_EACH);
}

/// The same for all files.
pub fn disown_all(e: &mut Engine) {
    for place in e.own_files.places() {
        disown(e, place);
    }
}

/// The program is about to unmap what lies there, or to map something else in its place. What it has written there nobody could find any
/// more.
pub fn unmapping(e: &mut Engine, start: u64, end: u64) {
    if !e.own_files.any {
        return;
    }
    let Engine { own_files, tracker, .. } = e;
    views::each(start, end, |start, end, key| {
        if tracker.may_be_written(start, end) {
            own_files.note(key, end - start);
        }
    });
}

impl OwnFiles {
    /// The part of a file that is kept at these keys has changed.
    fn note(&mut self, key: u64, len: u64) {
        let (place, from) = (((key - KEYS) / KEYS_EACH) as usize, (key - KEYS) % KEYS_EACH);
        self.files[place].changed.add(from, from + len);
    }
}

/// It has done so.
pub fn unmapped(e: &mut Engine, start: u64, end: u64) {
    if e.own_files.any && !views::remove(start, end) {
        disown_all(e);
    }
}

/// What lay at `old` lies at `new`, or at both.
pub fn moved(e: &mut Engine, old: (u64, u64), new: (u64, u64), keeps_old: bool) {
    if !e.own_files.any {
        return;
    }
    let key = views::key_of(old.0);
    let is_cleared = (keeps_old || views::remove(old.0, old.1)) && views::remove(new.0, new.1);
    if !is_cleared || key.is_some_and(|key| !views::put(new.0, new.1, key)) {
        disown_all(e);
    }
}

/// A hole was made in the files through what is mapped there.
pub fn content_changed(e: &mut Engine, start: u64, end: u64) {
    if e.own_files.any {
        views::each(start, end, |start, end, key| e.own_files.note(key, end - start));
    }
}

/// Has something changed since the commit that written pages do not tell?
pub fn are_disturbed(e: &Engine) -> bool {
    e.own_files.is_one_less
        || e.own_files.files.iter().any(|file| file.is_there() && (file.changed.count > 0 || !file.is_described))
}
