//! What calls do with these files.

use super::{descriptor, device_of, disown, disown_all, made, KEYS_EACH};
use crate::calls::offsets::is_at_offset;
use crate::calls::{birth, contexts};
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::undo::{look_at, target};
use crate::user;

const SEEK_CUR: u64 = 1;
const COLLAPSE_INSERT: u64 = 0x08 | 0x20;
const F_ADD_SEALS: u64 = 1033;
/// The bit that is O_TMPFILE's alone.
const O_TMPFILE: u64 = 0o20000000;
const FD_CLOEXEC: i64 = 1;
const F_GETFD: u64 = 1;

/// The place of the file that is open as `fd`, if it is one of these.
fn place_of(e: &Engine, fd: i32) -> Option<usize> {
    let look = look_at(fd).ok().filter(|look| look.links == 0)?;
    e.own_files.find(device_of(&look), look.identity.inode())
}

/// A call is about to be made that may take a file away from the program, or change it by what is not made again.
pub fn before(e: &mut Engine, call: &Call) {
    let fd = match call.nr {
        nr::SENDMSG if passes(call.args[1]) => return disown_all(e),
        nr::SENDMMSG => return disown_all(e),
        _ if contexts::submits(call) => return disown_all(e),
        nr::SENDFILE | nr::SPLICE | nr::COPY_FILE_RANGE => target(call),
        nr::FCNTL if call.args[1] == F_ADD_SEALS => Some(call.fd()),
        nr::CLOSE | nr::DUP2 | nr::DUP3 | nr::CLOSE_RANGE => return closing(e, call),
        _ => return,
    };
    if let Some(place) = fd.and_then(|fd| place_of(e, fd)) {
        disown(e, place);
    }
}

/// Files that have a name by now are others'.
fn named(e: &mut Engine) {
    for place in e.own_files.places() {
        if look_at(descriptor(e, place)).is_ok_and(|look| look.links != 0) {
            disown(e, place);
        }
    }
}

/// A descriptor of a file is about to go, with which that may be in no use any more.
fn closing(e: &mut Engine, call: &Call) {
    let fd = if call.nr == nr::CLOSE { call.fd() } else { call.args[1] as i32 };
    e.maps_dirty |= call.nr == nr::CLOSE_RANGE || place_of(e, fd).is_some();
}

/// The places of files that the program has open, as bits.
pub fn open_places(e: &Engine) -> u32 {
    let is_open = |fd: &i32| e.own_files.any && e.fds.is_open(*fd);
    (0..e.fds.end()).filter(is_open).filter_map(|fd| place_of(e, fd)).fold(0, |bits, place| bits | 1 << place)
}

/// Does a message come with descriptors?
fn passes(message: u64) -> bool {
    user::read::<[u64; 7]>(message).is_none_or(|header| header[5] != 0)
}

/// Does the call make a file without a name?
pub fn makes(call: &Call) -> bool {
    match call.nr {
        nr::MEMFD_CREATE => true,
        nr::OPENAT => call.args[2] & O_TMPFILE != 0,
        nr::OPEN => call.args[1] & O_TMPFILE != 0,
        _ => false,
    }
}

/// A call was made, and has changed what is in a file, or made one.
pub fn after(e: &mut Engine, call: &Call, r: i64) {
    if makes(call) && !err::is(r) {
        return made(e, r as i32);
    }
    if call.nr == nr::LINKAT {
        return named(e);
    }
    let changes = matches!(
        call.nr,
        nr::WRITE | nr::WRITEV | nr::PWRITE64 | nr::PWRITEV | nr::PWRITEV2 | nr::FTRUNCATE | nr::FALLOCATE
    );
    if !e.own_files.any || !changes || err::is(r) {
        return;
    }
    let Some(place) = place_of(e, call.fd()) else { return };
    let a = &call.args;
    let file = &mut e.own_files.files[place];
    let (from, to) = match call.nr {
        nr::FTRUNCATE => (a[1].min(file.now.size), KEYS_EACH),
        nr::FALLOCATE if a[1] & COLLAPSE_INSERT != 0 => (a[2], KEYS_EACH),
        nr::FALLOCATE => (a[2], a[2].saturating_add(a[3])),
        _ if is_at_offset(call) => {
            // SAFETY: no effect.
            let end = unsafe { syscall!(nr::LSEEK, call.fd(), 0, SEEK_CUR) }.max(0) as u64;
            (end.saturating_sub(r as u64), end)
        }
        nr::PWRITE64 | nr::PWRITEV if !crate::calls::write_file::appends(call) => (a[3], a[3].saturating_add(r as u64)),
        _ => (0, KEYS_EACH),
    };
    file.changed.add(from.min(KEYS_EACH), to.min(KEYS_EACH));
}

/// A child is about to be made: of a copy of the memory it has the mappings, of the table of descriptors what its next program gets.
pub fn bearing(e: &mut Engine, flags: u64) {
    if !e.own_files.any {
        return;
    }
    if flags & birth::CLONE_VM == 0 {
        return disown_all(e);
    }
    for fd in 0..e.fds.end() {
        // SAFETY: no effect.
        let stays = e.fds.is_open(fd) && unsafe { syscall!(nr::FCNTL, fd, F_GETFD) } & FD_CLOEXEC == 0;
        if let Some(place) = stays.then(|| place_of(e, fd)).flatten() {
            disown(e, place);
        }
    }
}
