//! Messages of faults that are over. A commit wakes who waits for a page as a signal does, and that one faults again: the kernel then has
//! a second message, and leaves it in the queue where the page comes just as its thread is on its way. Whoever brought the page once
//! more would find it there, which programs take for an error.

use crate::dispatch::{interruptible, native, Call};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;

/// `struct uffd_msg`.
const MESSAGE: u64 = 32;
const PAGEFAULT: u8 = 0x12;
const FLAG_WP: u64 = 2;
const FLAG_MINOR: u64 = 4;
const UFFDIO_WAKE: u64 = 0x8010_aa02;
const F_GETFL: u64 = 3;
const O_NONBLOCK: i64 = 0o4000;

/// A read of messages: until there is one of a fault that is not over.
pub fn read(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    loop {
        let r = interruptible(t, call);
        if call.nr != nr::READ || r < MESSAGE as i64 {
            return r;
        }
        let left = keep_current(e, call, r as u64 / MESSAGE);
        if left > 0 {
            return (left * MESSAGE) as i64;
        }
        let flags = native(&Call { nr: nr::FCNTL, args: [call.args[0], F_GETFL, 0, 0, 0, 0] });
        if flags & O_NONBLOCK != 0 {
            return err::EAGAIN;
        }
    }
}

/// Moves the messages that are of faults under way to the front; how many these are.
fn keep_current(e: &Engine, call: &Call, count: u64) -> u64 {
    let mut kept = 0;
    for n in 0..count {
        let at = call.args[1] + n * MESSAGE;
        let Some(message) = user::read::<[u64; 4]>(at) else { return count };
        if is_over(e, &message) {
            wake(call, message[2] & !4095);
            continue;
        }
        if kept != n && !user::write(call.args[1] + kept * MESSAGE, &message) {
            return count;
        }
        kept += 1;
    }
    kept
}

/// Is the page there, or not protected any more?
fn is_over(e: &Engine, &[event, flags, address, _]: &[u64; 4]) -> bool {
    let page = address & !4095;
    match flags & (FLAG_WP | FLAG_MINOR) {
        _ if event as u8 != PAGEFAULT => false,
        0 => e.tracker.are_present(page, page + 4096),
        FLAG_WP => !e.tracker.any_protected(page, page + 4096),
        _ => false,
    }
}

/// If its thread waits after all, it looks again.
fn wake(call: &Call, page: u64) {
    let range = [page, 4096u64];
    native(&Call { nr: nr::IOCTL, args: [call.args[0], UFFDIO_WAKE, range.as_ptr() as u64, 0, 0, 0] });
}
