//! Calls on futexes: which words of the program's they name, and what the kernel does to these.

use crate::dispatch::Call;
use crate::sys::nr;
use crate::user;

const COMMAND: u64 = 0x7f;
const PRIVATE: u64 = 128;
/// WAKE_OP, and those with priority inheritance.
const WRITING: [u64; 7] = [5, 6, 7, 8, 11, 12, 13];
/// REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_REQUEUE_PI and CMP_REQUEUE_PI: their fifth argument is a futex, too.
const OF_TWO: [u64; 5] = [3, 4, 5, 11, 12];

const FUTEX_WAKE: u64 = 454;
const FUTEX_WAIT: u64 = 455;
const FUTEX_REQUEUE: u64 = 456;

/// The numbers of all.
pub const NUMBERS: [u64; 5] = [nr::FUTEX, nr::FUTEX_WAITV, FUTEX_WAKE, FUTEX_WAIT, FUTEX_REQUEUE];

/// Of a `struct futex_waitv`: a value, the address of the futex, flags.
const WAITER_LEN: u64 = 24;
const MOST_WAITERS: u64 = 128;

/// Is the call one on a futex of this process alone, which the kernel knows by its address? Others it knows by their page, which it pins. Of
/// all but futex(2) it is not asked.
pub fn is_private(call: &Call) -> bool {
    call.nr == nr::FUTEX && call.args[1] & PRIVATE != 0
}

/// Does the kernel write to the word?
pub fn is_written(call: &Call) -> bool {
    call.nr == nr::FUTEX && WRITING.contains(&(call.args[1] & COMMAND))
}

/// Calls `f` with start and length of each word.
pub fn each(call: &Call, mut f: impl FnMut(u64, u64)) {
    let a = &call.args;
    let waiters = match call.nr {
        nr::FUTEX_WAITV => a[1].min(MOST_WAITERS),
        FUTEX_REQUEUE => 2,
        _ => {
            f(a[0], 4);
            if call.nr == nr::FUTEX && OF_TWO.contains(&(a[1] & COMMAND)) {
                f(a[4], 4);
            }
            return;
        }
    };
    for n in 0..waiters {
        if let Some(at) = user::read(a[0].wrapping_add(n * WAITER_LEN + 8)) {
            f(at, 4);
        }
    }
}
