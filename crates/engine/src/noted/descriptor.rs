//! Calls that make a descriptor, from a connection or a file they create: it is the lowest number that was free, and the
//! anchor keeps the table. Where that is gone as well, a file that was to be made tells by its name.

use super::note::{how, note};
use super::witness;
use crate::calls;
use crate::descriptors::HIGHEST;
use crate::dispatch::{issue, Call};
use crate::ring::Entry;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::user;
use core::sync::atomic::Ordering::Relaxed;
use outlast_calls::{Place, Witness};

const O_CREAT_EXCL: u64 = 0o100 | 0o200;

fn is_open(fd: i32) -> bool {
    // SAFETY: F_GETFD has no effect.
    unsafe { !err::is(syscall!(nr::FCNTL, fd, 1)) }
}

/// The number that the next descriptor gets. A file that a dead predecessor's engine left open there is closed.
fn next_number(e: &Engine) -> Option<i32> {
    let taken = |fd: i32| e.fds.is_open(fd) || (e.fds.is_own(fd) && is_open(fd));
    let free = (0..HIGHEST as i32).find(|&fd| !taken(fd))?;
    if is_open(free) {
        // SAFETY: not in the program's table and not the engine's.
        unsafe { syscall!(nr::CLOSE, free) };
    }
    Some(free)
}

/// The name of the file that the call makes, or fails if it is there. Any other call may be made again.
fn made_name(call: &Call) -> Option<Witness> {
    let (place, flags) = match call.nr {
        nr::OPEN => (Place::path(0), call.args[1]),
        nr::OPENAT => (Place::at(0, 1), call.args[2]),
        nr::OPENAT2 => (Place::at(0, 1), user::read(call.args[2])?),
        _ => return None,
    };
    (flags & O_CREAT_EXCL == O_CREAT_EXCL).then_some(Witness::Created(place))
}

/// Makes `call`, whose result is a descriptor.
pub fn make(e: &Engine, id: u64, call: &Call) -> i64 {
    let (number, name) = (next_number(e), made_name(call));
    if let Some(name) = name.filter(|_| note().tells(id, how::MADE_NAME)) {
        // What somebody has written to since is somebody else's.
        if witness::happened(call, name) && witness::is_empty_file(call, name) {
            return calls::names::open_made(call);
        }
    }
    note().begin(how::DESCRIPTOR, -1);
    note().start.store(number.unwrap_or(-1) as u64, Relaxed);
    note().staged.store(name.is_some() as u64, Relaxed);
    if let Some(name) = name {
        witness::note_before(call, name);
    }
    note().arm(id);
    issue(call)
}

pub fn accept(e: &Engine, id: u64, entry: &Entry) -> i64 {
    let args = [entry.fd as u64, entry.addr, entry.off, entry.op_flags as u64, 0, 0];
    make(e, id, &Call { nr: nr::ACCEPT4, args })
}

/// The descriptor a dead predecessor got. To be asked before anything else is opened.
pub fn made() -> Option<i64> {
    let fd = note().start.load(Relaxed) as i32;
    if is_open(fd) {
        return Some(fd as i64);
    }
    // What is opened there from now on is the engine's own.
    match note().staged.load(Relaxed) {
        0 => note().void(),
        _ => note().turn(how::MADE_NAME),
    }
    None
}
