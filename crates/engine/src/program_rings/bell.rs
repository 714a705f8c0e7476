//! The eventfd that stands for a ring: readable when there are completions, or more to wait for.

use super::code;
use super::layout::{notes, MOST_REQUESTS};
use super::setup::EFD_CLOEXEC_NONBLOCK;
use crate::calls::memory::hits_engine;
use crate::dispatch;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use outlast_image::kernel::ProgramRing;

/// No ring's notes are longer.
const NOTES_LEN: u64 = notes::len(MOST_REQUESTS);

/// After a cold resume: is it a ring's descriptor, and there again?
pub fn reopen(e: &Engine, fd: i32) -> bool {
    const O_CLOEXEC: u64 = 0o2000000;
    if super::find(e, fd).is_none() {
        return false;
    }
    // SAFETY: makes an eventfd under the number, which is free or not the program's yet.
    unsafe {
        let r = syscall!(nr::EVENTFD2, 0, EFD_CLOEXEC_NONBLOCK);
        if err::is(r) || r == fd as i64 {
            return r == fd as i64;
        }
        let is_there = !err::is(syscall!(nr::DUP3, r, fd, O_CLOEXEC));
        syscall!(nr::CLOSE, r);
        is_there
    }
}

/// In a restored process: whoever waits for a ring looks at it once more.
pub fn restore(e: &mut Engine) {
    // What the store says is untrusted.
    for ring in e.kernel.rings.iter_mut().filter(|ring| hits_engine(ring.notes, NOTES_LEN)) {
        *ring = ProgramRing::NONE;
    }
    for ring in e.kernel.rings.iter().filter(|ring| ring.notes != 0) {
        code::renew(ring.notes);
    }
    for ring in e.kernel.rings.iter().filter(|ring| ring.notes != 0 && ring.fd >= 0) {
        ring_bell(ring.fd);
    }
    if super::exist(e) {
        dispatch::slow_down_waits(true);
    }
}

/// Makes a ring's descriptor readable.
pub fn ring_bell(fd: i32) {
    let one = 1u64;
    // SAFETY: reads the eight bytes of `one`; the descriptor does not block.
    unsafe { syscall!(nr::WRITE, fd, &raw const one, 8) };
}

/// Makes it unreadable.
pub fn silence(fd: i32) {
    let mut count = 0u64;
    // SAFETY: writes the eight bytes of `count`; the descriptor does not block.
    unsafe { syscall!(nr::READ, fd, &raw mut count, 8) };
}
