//! Interval timers of the wall clock's time (setitimer, alarm): the kernel forgets them with the process, the kernel state keeps them.

use crate::call_filters;
use crate::calls::posix_timers::{self, CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM};
use crate::calls::processor_timers;
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::state::Engine;
use crate::sys::{err, now_ns, nr, syscall};
use crate::user;
use outlast_filter::needs::wish;
use outlast_image::mutant::Mutant;

const ITIMER_REAL: u64 = 0;
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
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
fn as_found(interval: [u64; 2], left: [u64; 2]) -> [u64; 2] {
    match (nanoseconds(interval), nanoseconds(left)) {
        (0, 0) => [0, 0],
        (interval, 0) => [interval, now_ns()],
        _ => as_kept(interval, left),
    }
}

/// All interval timers that the program has had since before the engine began: they outlast an execve.
pub fn find(e: &mut Engine) {
    let mut timer = [0u64; 4];
    // SAFETY: asks only; the kernel writes 32 bytes.
    if call_filters::permit(wish::GETITIMER) && unsafe { syscall!(nr::GETITIMER, ITIMER_REAL, timer.as_mut_ptr()) } == 0
    {
        e.kernel.itimer = as_found([timer[0], timer[1]], [timer[2], timer[3]]);
    }
    processor_timers::find(e);
    e.kernel_dirty = true;
}

/// setitimer and alarm. Their effect is private: a rollback sets the committed timer again.
pub fn set(e: &mut Engine, call: &Call) -> i64 {
    if call.nr != nr::ALARM && processor_timers::is_one(call.args[0]) {
        return processor_timers::set(e, call);
    }
    let r = native(call);
    if err::is(r) {
        return r;
    }
    let a = call.args;
    let [a0, a1, b0, b1] = match call.nr {
        nr::ALARM => [0, 0, a[0] & 0xffff_ffff, 0],
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

/// Nanoseconds by which the wall clock is ahead of CLOCK_MONOTONIC and CLOCK_BOOTTIME.
fn ahead() -> [u64; 2] {
    [CLOCK_MONOTONIC, CLOCK_BOOTTIME]
        .map(|clock| posix_timers::now(CLOCK_REALTIME).wrapping_sub(posix_timers::now(clock)))
}

/// The state is about to be committed. What its timers wait for another boot's clocks do not know: but for the wall clock they begin anew.
pub fn note_boot(e: &mut Engine) {
    let are_set = e.kernel.itimer[1] != 0 || e.kernel.timers.iter().any(|timer| timer.deadline != 0);
    if e.kernel_dirty && are_set {
        (e.kernel.boot, e.kernel.ahead) = (e.args.boot, ahead());
    }
}

/// After another boot the committed timers wait for the same moments of the wall clock.
pub fn follow_boot(e: &mut Engine) {
    if e.kernel.boot == 0 || e.args.boot == 0 || e.kernel.boot == e.args.boot {
        return;
    }
    let (then, now) = (e.kernel.ahead, ahead());
    let follow = |deadline: &mut u64, clock: usize| {
        let moment = deadline.wrapping_add(then[clock]);
        // What is over is due, not unset.
        let left = (moment.wrapping_sub(now[clock]) as i64).max(1);
        *deadline = if *deadline == 0 { 0 } else { left as u64 };
    };
    follow(&mut e.kernel.itimer[1], 0);
    for timer in &mut e.kernel.timers {
        match timer.clock {
            CLOCK_MONOTONIC => follow(&mut timer.deadline, 0),
            CLOCK_BOOTTIME | CLOCK_BOOTTIME_ALARM => follow(&mut timer.deadline, 1),
            _ => {}
        }
    }
    e.kernel_dirty = true;
}

/// Sets the committed timer in a restored process. One whose time has come meanwhile fires at once.
pub fn restore(e: &Engine, in_place: bool) {
    processor_timers::restore(e, in_place);
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
