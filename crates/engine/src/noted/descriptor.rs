//! Calls that make a descriptor, from a connection or a file they create: it is the lowest number that was free, and the
//! anchor keeps the table.

use super::note::{how, note};
use crate::descriptors::HIGHEST;
use crate::dispatch::{issue, Call};
use crate::ring::Entry;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::Relaxed;

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

/// Makes `call`, whose result is a descriptor.
pub fn make(e: &Engine, id: u64, call: &Call) -> i64 {
    note().begin(how::DESCRIPTOR, -1);
    note().start.store(next_number(e).unwrap_or(-1) as u64, Relaxed);
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
    note().void();
    None
}
