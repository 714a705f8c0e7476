//! Interval timers (setitimer, alarm): the kernel forgets them with the process, the kernel state keeps them.

use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::state::Engine;
use crate::sys::{err, now_ns, nr, syscall};
use crate::user;
use outlast_image::mutant::Mutant;

const ITIMER_REAL: u64 = 0;
pub const SIGALRM: i32 = 14;

fn nanoseconds(timeval: [u64; 2]) -> u64 {
    timeval[0].saturating_mul(1_000_000_000).saturating_add(timeval[1].saturating_mul(1000))
}

/// The timer as the kernel state keeps it: interval, and what is left of its time.
pub fn as_kept(interval: [u64; 2], left: [u64; 2]) -> [u64; 2] {
    let (interval, value) = (nanoseconds(interval), nanoseconds(left));
    if value == 0 {
        [0, 0]
    } else {
        [interval, now_ns() + value]
    }
}

/// The same of a timer that was there before the engine: one with an interval and nothing left is due. The kernel sets it again when its
/// signal is taken.
pub fn as_found(interval: [u64; 2], left: [u64; 2]) -> [u64; 2] {
    match (nanoseconds(interval), nanoseconds(left)) {
        (0, 0) => [0, 0],
        (interval, 0) => [interval, now_ns()],
        _ => as_kept(interval, left),
    }
}

/// setitimer and alarm. Their effect is private: a rollback sets the committed timer again.
pub fn set(e: &mut Engine, call: &Call) -> i64 {
    let r = native(call);
    if err::is(r) {
        return r;
    }
    let a = call.args;
    let [a0, a1, b0, b1] = match call.nr {
        nr::ALARM => [0, 0, a[0] & 0xffff_ffff, 0],
        _ if a[0] != ITIMER_REAL => return r,
        _ => user::read::<[u64; 4]>(a[1]).unwrap_or_default(),
    };
    e.kernel.itimer = as_kept([a0, a1], [b0, b1]);
    e.kernel_dirty = true;
    r
}

/// A timer without interval is over when its signal was delivered.
pub fn delivered(e: &mut Engine) {
    if e.kernel.itimer[0] == 0 && e.kernel.itimer[1] != 0 {
        e.kernel.itimer = [0, 0];
        e.kernel_dirty = true;
    }
}

/// Sets the committed timer in a restored process. One whose time has come meanwhile fires at once.
pub fn restore(e: &Engine) {
    if without(Mutant::Timer) {
        return;
    }
    let [interval, deadline] = e.kernel.itimer;
    let left = if deadline == 0 { 0 } else { deadline.saturating_sub(now_ns()).max(1000) };
    let timeval = |ns: u64| [ns / 1_000_000_000, ns % 1_000_000_000 / 1000];
    let ([a, b], [c, d]) = (timeval(interval), timeval(left));
    let value = [a, b, c, d];
    // SAFETY: sets the timer of this process.
    unsafe { syscall!(nr::SETITIMER, ITIMER_REAL, value.as_ptr(), 0) };
}
