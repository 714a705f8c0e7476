//! Whoever is restored has these files as they were at the commit.

use super::saving::committed;
use super::{descriptor, device_of, held, key_at, note_held, views, Changed, File, OwnFiles, KEYS_EACH};
use crate::mutant::without;
use crate::proc;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::undo::look_at;
use outlast_image::descriptor::Descriptor;
use outlast_image::layout::{HELD_FILES, PAGE, STORE_BASE};
use outlast_image::mutant::Mutant;
use outlast_image::own_file::OwnFile;
use outlast_image::region::Region;

const O_CLOEXEC: u64 = 0o2000000;
const MFD_CLOEXEC: u64 = 1;
const MAP_SHARED_FIXED: u64 = 0x11;
const F_DUPFD_CLOEXEC: u64 = 1030;
const SEEK_DATA: u64 = 3;
const SEEK_HOLE: u64 = 4;
const PUNCH_HOLE_KEEP_SIZE: u64 = 2 | 1;
/// All but what makes a file: O_CREAT, O_EXCL, O_TRUNC, O_TMPFILE.
const OPENING: u32 = !(0o100 | 0o200 | 0o1000 | 0o20200000);
/// What the kernel takes at most.
const NAME_MAX: usize = 249;

/// Takes the files from the commit; those that are not held any more are made, and empty.
pub fn load(e: &mut Engine) {
    e.own_files = OwnFiles::NONE;
    for place in 0..HELD_FILES {
        let Some((then, name)) = committed(e, place) else { continue };
        let is_held = is_held(e, place, then.serial);
        if !is_held && (without(Mutant::OwnFilesAnew) || !make(e, place, then.serial, name)) {
            continue;
        }
        let Ok(look) = look_at(descriptor(e, place)) else { continue };
        let now = OwnFile { device: device_of(&look), inode: look.identity.inode(), ..then };
        e.own_files.files[place] = File { now, then, changed: Changed::NOTHING, is_described: now == then };
        e.own_files.any = true;
    }
    crate::held_files::recover(e);
}

/// Is it still the file that has this number?
fn is_held(e: &Engine, place: usize, serial: u64) -> bool {
    let inode = look_at(descriptor(e, place)).map(|look| look.identity.inode());
    e.held.is_plain(place) && inode.is_ok_and(|inode| held(place) == [serial, inode])
}

/// Makes an empty file with the name that the lost one had.
fn make(e: &Engine, place: usize, serial: u64, name: &[u8]) -> bool {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let name = name.strip_prefix(b"/memfd:").unwrap_or(name);
    let mut path = [0u8; NAME_MAX + 1];
    let len = name.len().min(NAME_MAX);
    path[..len].copy_from_slice(&name[..len]);
    // SAFETY: the name ends with a NUL, the number is the engine's.
    unsafe {
        let fd = syscall!(nr::MEMFD_CREATE, path.as_ptr(), MFD_CLOEXEC);
        if err::is(fd) {
            return false;
        }
        let r = syscall!(nr::DUP3, fd, descriptor(e, place), O_CLOEXEC);
        syscall!(nr::CLOSE, fd);
        if err::is(r) {
            return false;
        }
    }
    let look = look_at(descriptor(e, place));
    look.is_ok_and(|look| {
        note_held(place, serial, look.identity.inode());
        true
    })
}

/// The place of the file that had this device and inode at the commit.
fn then(e: &Engine, is_device: impl Fn(u64) -> bool, inode: u64) -> Option<usize> {
    e.own_files.files.iter().position(|file| file.is_there() && file.then.inode == inode && is_device(file.then.device))
}

/// Opens once more what the commit describes as a descriptor of such a file. None: it is of another.
pub fn open_again(e: &Engine, d: &Descriptor) -> Option<i64> {
    // As `stat` has it: twelve bits of the major number between eight and twelve of the minor one.
    let made = |device: u64| {
        let (major, minor) = (device >> 32, device & 0xffff_ffff);
        minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
    };
    let place = then(e, |device| made(device) == d.dev, d.inode)?;
    let file = proc::open_again(descriptor(e, place), u64::from(d.flags & OPENING)).ok()?;
    // SAFETY: a number of the caller's own.
    Some(unsafe { syscall!(nr::FCNTL, file.fd, F_DUPFD_CLOEXEC, 0) })
}

/// Maps a region of the commit. False: its file cannot be had.
pub fn map(e: &mut Engine, r: &Region) -> bool {
    let Some(place) = then(e, |device| device == r.dev, r.inode) else { return false };
    let len = r.end - r.start;
    if r.offset.checked_add(len).is_none_or(|end| end > KEYS_EACH) {
        return false;
    }
    let fd = descriptor(e, place);
    // SAFETY: the range was unmapped.
    let got = unsafe { syscall!(nr::MMAP, r.start, len, r.prot, MAP_SHARED_FIXED, fd, r.offset) };
    got as u64 == r.start && views::put(r.start, r.end, key_at(place) + r.offset)
}

/// Gives all files the size and the content of the commit.
pub fn fill(e: &mut Engine) {
    if without(Mutant::OwnFiles) {
        return;
    }
    for place in e.own_files.places() {
        let (fd, key, size) = (descriptor(e, place), key_at(place), e.own_files.files[place].then.size);
        // SAFETY: nobody but the program has the file.
        unsafe { syscall!(nr::FTRUNCATE, fd, size) };
        empty(e, fd, key, size);
        e.store().runs(key, key + size.next_multiple_of(PAGE), &mut |at, offset, len| {
            let (mut done, from) = (0, at - key);
            let len = len.min(size - from);
            while done < len {
                // SAFETY: the frames lie in the mapped store.
                let n = unsafe { syscall!(nr::PWRITE64, fd, STORE_BASE + offset + done, len - done, from + done) };
                if n <= 0 {
                    crate::control::fail!(n);
                }
                done += n as u64;
            }
        });
    }
}

/// What the file holds and the commit does not is gone.
fn empty(e: &mut Engine, fd: i32, key: u64, size: u64) {
    let mut at = 0;
    while at < size {
        // SAFETY: moves the engine's own offset.
        let (data, hole) = unsafe {
            let data = syscall!(nr::LSEEK, fd, at, SEEK_DATA);
            if err::is(data) {
                return;
            }
            (data as u64 & !(PAGE - 1), (syscall!(nr::LSEEK, fd, data, SEEK_HOLE) as u64).next_multiple_of(PAGE))
        };
        let mut reached = data;
        let punch = |from: u64, to: u64| {
            if from < to {
                // SAFETY: as in `fill`.
                unsafe { syscall!(nr::FALLOCATE, fd, PUNCH_HOLE_KEEP_SIZE, from, to - from) };
            }
        };
        e.store().runs(key + data, key + hole, &mut |kept, _, len| {
            punch(reached, kept - key);
            reached = kept - key + len;
        });
        punch(reached, hole);
        at = hole.max(data + PAGE);
    }
}
