//! What calls do with these files.

use super::keeping::{disown, disown_all, made};
use super::{descriptor, device_of, KEYS_EACH};
use crate::calls::{birth, contexts};
use crate::dispatch::Call;
use crate::mutant::without;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::undo::{change, look_at, target, Change as Part};
use outlast_image::mutant::Mutant;

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

/// What a call is about to change: the place of a file, and which part of that.
pub type Change = (usize, u64, u64);

/// A call is about to be made, which may take a file away from the program, or change what is in it.
pub fn before(e: &mut Engine, call: &Call) -> Option<Change> {
    if !e.own_files.any {
        return None;
    }
    match call.nr {
        _ if contexts::submits(call) => disown_all(e),
        // What these have done they do not do again.
        nr::SENDFILE | nr::SPLICE | nr::COPY_FILE_RANGE => lend(e, target(call)),
        nr::FCNTL if call.args[1] == F_ADD_SEALS => lend(e, Some(call.fd())),
        nr::CLOSE | nr::DUP2 | nr::DUP3 | nr::CLOSE_RANGE => closing(e, call),
        _ => return changed_by(e, call),
    }
    None
}

fn lend(e: &mut Engine, fd: Option<i32>) {
    if let Some(place) = fd.and_then(|fd| place_of(e, fd)) {
        disown(e, place);
    }
}

fn changed_by(e: &Engine, call: &Call) -> Option<Change> {
    let fd = target(call)?;
    let place = place_of(e, fd)?;
    let Part { from, to, .. } = change(call, fd, look_at(fd).ok()?.size);
    Some((place, from.min(KEYS_EACH), to.min(KEYS_EACH)))
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
    let end = if e.own_files.any { e.fds.end() } else { 0 };
    (0..end).filter(|&fd| e.fds.is_open(fd)).filter_map(|fd| place_of(e, fd)).fold(0, |bits, place| bits | 1 << place)
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

/// A call was made, of which [`before`] has said what it would change.
pub fn after(e: &mut Engine, call: &Call, r: i64, change: Option<Change>) {
    if err::is(r) {
        return;
    }
    if makes(call) {
        made(e, r as i32);
    }
    if call.nr == nr::LINKAT {
        named(e);
    }
    if let Some((place, from, to)) = change.filter(|_| !without(Mutant::CalledChanges)) {
        e.own_files.files[place].changed.add(from, to);
    }
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
