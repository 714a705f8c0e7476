//! Terminals, and other character devices that splice: as pipes, but input passes through the transfer pipe, because
//! the kernel has no splice from them into a file.

use super::note::{how, note};
use super::{completions, plain, transfer};
use crate::operation::{is_ready, POLLIN};
use crate::ring::Entry;
use crate::state::Engine;
use crate::sys::err;
use core::sync::atomic::Ordering::Relaxed;

pub fn read(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    // Tells an end of file as well, and writes to memory.
    if let Some(r) = completions::run(e, id, entry, entry.fd) {
        return r;
    }
    if !transfer::may_deposit() {
        return plain(e, id, entry);
    }
    note().begin(how::COLLECTED, entry.fd);
    transfer::clear(e);
    transfer::count_from(entry.addr);
    note().words[0].store(end_is_next(entry.fd) as u64, Relaxed);
    note().arm(id);
    match transfer::take(e, entry.fd, entry.len as u64) {
        1.. => transfer::collect(e),
        // Not every driver of every kernel splices.
        err::EINVAL => plain(e, id, entry),
        r => r,
    }
}

/// Ready, and yet without a byte: the next read takes an end of file away.
fn end_is_next(fd: i32) -> bool {
    transfer::readable(fd) == Some(0) && is_ready(fd, POLLIN)
}

/// What a dead predecessor took in.
pub fn collected(e: &mut Engine) -> Option<i64> {
    match transfer::collect(e) {
        0 => {
            let ended = note().words[0].load(Relaxed) != 0 && !end_is_next(note().fd.load(Relaxed) as i32);
            ended.then_some(0)
        }
        n => Some(n),
    }
}

pub fn write(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    let staged = transfer::begin(e, id, entry);
    if staged <= 0 {
        return staged;
    }
    let mut moved = 0;
    while moved < staged {
        match transfer::send(e, entry.fd, (staged - moved) as u64) {
            n @ 1.. => moved += n,
            err::EINVAL if moved == 0 => return plain(e, id, entry),
            r => return if moved > 0 { moved } else { r },
        }
    }
    transfer::sent_all(e);
    moved
}
