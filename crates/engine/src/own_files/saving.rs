//! What a commit says of these files, and what of them it reads.

use super::keeping::{is_usable, release, TMPFS_MAGIC};
use super::{descriptor, key_at, Changed, OwnFile, KEYS_EACH};
use crate::proc;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::undo::look_at;
use outlast_image::layout::{HELD_FILES, PAGE};

const SEEK_DATA: u64 = 3;
const SEEK_HOLE: u64 = 4;
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Bytes of a file on a disk that is kept: what is written there is copied. Of a file in memory as much is copied as of other memory.
const LARGEST: u64 = 64 << 20;
const PATH_MAX: usize = 4096;

/// Puts what has changed into the record being built.
pub fn save(e: &mut Engine) {
    if e.own_files.is_one_less {
        e.own_files.is_one_less = false;
        for place in 0..HELD_FILES {
            if !e.own_files.files[place].is_there() && is_described(e, place) {
                e.store().delete(object::OWN_FILE, place as u64);
            }
        }
    }
    if e.own_files.any {
        for place in e.own_files.places() {
            save_one(e, place);
        }
    }
}

fn is_described(e: &mut Engine, place: usize) -> bool {
    e.store().object(object::OWN_FILE, place as u64, &mut []).is_some()
}

fn save_one(e: &mut Engine, place: usize) {
    let fd = descriptor(e, place);
    let size = look_at(fd).map_or(0, |look| look.size);
    if size > LARGEST && !is_usable(fd, &[TMPFS_MAGIC]) {
        return release(e, place);
    }
    let file = &mut e.own_files.files[place];
    let changed = core::mem::replace(&mut file.changed, Changed::NOTHING);
    let is_described = core::mem::replace(&mut file.is_described, true) && file.now.size == size;
    file.now.size = size;
    file.then = file.now;
    let now = file.now;
    if !is_described {
        let mut name = [0u8; PATH_MAX];
        let name = proc::link(fd, &mut name);
        e.store().put2(object::OWN_FILE, place as u64, bytemuck::bytes_of(&now), name);
    }
    for &(from, to) in &changed.parts[..changed.count] {
        read_back(e, fd, place, from & !(PAGE - 1), to.saturating_add(PAGE - 1) & !(PAGE - 1));
    }
}

/// Reads a part of the file into the record. `fd` has an offset that is the engine's.
fn read_back(e: &mut Engine, fd: i32, place: usize, from: u64, to: u64) {
    let (key, to) = (key_at(place), to.min(KEYS_EACH));
    let mut at = from;
    while at < to {
        // SAFETY: moves the engine's own offset.
        let data = unsafe { syscall!(nr::LSEEK, fd, at, SEEK_DATA) };
        let data = if err::is(data) { to } else { (data as u64 & !(PAGE - 1)).clamp(at, to) };
        if data > at {
            e.store().drop_range(key + at, key + data);
        }
        at = data;
        if at < to {
            // SAFETY: as above.
            let hole = unsafe { syscall!(nr::LSEEK, fd, at, SEEK_HOLE) };
            let hole =
                if err::is(hole) { at + PAGE } else { (hole as u64).next_multiple_of(PAGE).clamp(at + PAGE, to) };
            read_data(e, fd, key, at, hole);
            at = hole;
        }
    }
}

fn read_data(e: &mut Engine, fd: i32, key: u64, from: u64, to: u64) {
    let buf = &mut scratch::object_buffer()[..PIECE];
    let mut at = from;
    while at < to {
        let len = (to - at).min(PIECE as u64) as usize;
        // SAFETY: reads into the buffer.
        let n = unsafe { syscall!(nr::PREAD64, fd, buf.as_mut_ptr(), len, at) };
        // Behind its end a page of the file is zero.
        buf[n.max(0) as usize..len].fill(0);
        e.store().pages(key + at, &buf[..len]);
        at += len as u64;
    }
}

/// A commit has looked which files are held: what nothing is mapped of any more, as nobody goes back to where something was, is let go of.
pub fn follow(e: &mut Engine) {
    if e.own_files.any {
        for place in e.own_files.places() {
            if !e.held.is_plain(place) {
                release(e, place);
            }
        }
    }
}

/// As the store has it: what it is, and what the kernel calls it.
pub fn committed(e: &mut Engine, place: usize) -> Option<(OwnFile, &'static [u8])> {
    let buf = scratch::object_buffer();
    let n = e.store().object(object::OWN_FILE, place as u64, buf)?.min(buf.len());
    let (head, name) = buf[..n].split_at_checked(size_of::<OwnFile>())?;
    let file: OwnFile = bytemuck::pod_read_unaligned(head);
    (file.serial != 0).then_some((file, name))
}
