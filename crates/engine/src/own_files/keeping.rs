//! Which files become the program's own, and which are that no more.

use super::{descriptor, device_of, key_at, note_held, views, Changed, File, KEYS_EACH};
use crate::control::degrade;
use crate::held_files;
use crate::mutant::without;
use crate::proc;
use crate::state::Engine;
use crate::sys::{err, nr, syscall, tsc};
use crate::tracker::Track;
use crate::undo::{self, look_at, Look};
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;
use outlast_image::own_file::OwnFile;

const O_RDWR: u64 = 2;
const O_ACCMODE: i64 = 3;
const O_CLOEXEC: u64 = 0o2000000;
const F_GETFL: u64 = 3;
const F_GET_SEALS: u64 = 1034;
/// Seals that change nothing of what is done here: against further ones, and against a change of the mode.
const HARMLESS_SEALS: i64 = 0x01 | 0x20;
pub const TMPFS_MAGIC: u64 = 0x0102_1994;
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;
/// Places that are left to files that are mapped.
const RESERVED: usize = 4;

/// A call of the program's has made a file without a name, and opened it.
pub fn made(e: &mut Engine, fd: i32) {
    let Some(look) = look_at(fd).ok().filter(|look| look.is_regular() && look.links == 0) else { return };
    if e.held.room() > RESERVED && is_usable(fd, &[]) {
        keep(e, fd, &look);
    }
}

/// Makes a file one of these, if nobody else has it and nothing of it is mapped yet.
pub fn adopt(e: &mut Engine, fd: i32, look: &Look) -> bool {
    let is_free = !undo::is_shared(e, &look.identity) && held_files::extent(e, &look.identity).is_none();
    // Of a memfd the kernel counts all descriptors but the first one.
    let is_alone = || {
        undo::is_open_once(fd)
            || proc::open_again(fd, O_RDWR).is_ok_and(|another| undo::is_open_once(another.fd as i32))
    };
    is_usable(fd, &[TMPFS_MAGIC]) && is_free && is_alone() && keep(e, fd, look)
}

/// Can what is in the file be read and written, on one of these file systems, or on any but that of huge pages?
pub fn is_usable(fd: i32, systems: &[u64]) -> bool {
    let mut fs = [0u64; 15];
    // SAFETY: fstatfs writes 120 bytes; the others have no effect.
    unsafe {
        syscall!(nr::FSTATFS, fd, fs.as_mut_ptr()) == 0
            && (systems.contains(&fs[0]) || systems.is_empty() && fs[0] != HUGETLBFS_MAGIC)
            && syscall!(nr::FCNTL, fd, F_GETFL) & O_ACCMODE == O_RDWR as i64
            && syscall!(nr::FCNTL, fd, F_GET_SEALS).max(0) & !HARMLESS_SEALS == 0
    }
}

/// Is it a file in memory?
pub fn is_in_memory(fd: i32) -> bool {
    is_usable(fd, &[TMPFS_MAGIC])
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
pub fn disown(e: &mut Engine, place: usize) {
    if without(Mutant::LentFiles) {
        return;
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
pub fn release(e: &mut Engine, place: usize) {
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
