//! Interval timers of processor time (ITIMER_VIRTUAL, ITIMER_PROF). What is left of them only a look tells, as nobody but the kernel
//! knows when their clocks run: every commit looks at those that the program has set.

use crate::call_filters;
use crate::control::control;
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::queued;
use crate::signals::{bit, signal_code, SIG_IGN};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::{self, pending_bit, Thread};
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::Relaxed;
use outlast_filter::needs::wish;
use outlast_image::kernel::ProcessorTimer;
use outlast_image::mutant::Mutant;

/// `which` of setitimer, and what the timer sends.
const KINDS: [(u64, i32); 2] = [(1, 26), (2, 27)];
/// What the kernel sends of its own accord.
const SI_KERNEL: i32 = 0x80;
/// The shortest time for which the kernel sets a timer.
const SHORTEST_NS: u64 = 1000;

fn place_of(which: u64) -> Option<usize> {
    KINDS.iter().position(|&(kind, _)| kind as i32 == which as i32)
}

pub fn is_one(which: u64) -> bool {
    place_of(which).is_some()
}

fn nanoseconds(timeval: [u64; 2]) -> u64 {
    timeval[0].saturating_mul(1_000_000_000).saturating_add(timeval[1].saturating_mul(1000))
}

fn timeval(ns: u64) -> [u64; 2] {
    [ns / 1_000_000_000, ns % 1_000_000_000 / 1000]
}

/// Does such a timer make the signal?
pub fn makes(info: &[u64; 16]) -> bool {
    signal_code(info) == SI_KERNEL && KINDS.iter().any(|&(_, signal)| info[0] as i32 == signal)
}

/// Its signals come again by themselves: nobody is to send them to a successor, which may stand before there was a handler.
fn will_make(signal: i32) {
    control().timed.fetch_or(bit(signal), Relaxed);
}

/// setitimer. Its effect is private: a rollback sets the committed timer again.
pub fn set(e: &mut Engine, call: &Call) -> i64 {
    let Some(place) = place_of(call.args[0]) else { return native(call) };
    // A death may come between the first signal and the engine's next instruction.
    will_make(KINDS[place].1);
    let r = native(call);
    if !err::is(r) {
        let [a, b, c, d] = user::read::<[u64; 4]>(call.args[1]).unwrap_or_default();
        let (interval, left) = (nanoseconds([a, b]), nanoseconds([c, d]));
        e.kernel.processor_timers[place] = match left {
            // What it has sent may still wait.
            0 => ProcessorTimer { used: 1, ..ProcessorTimer::NONE },
            _ => ProcessorTimer { used: 1, is_due: 0, interval, left },
        };
        e.kernel_dirty = true;
    }
    r
}

/// The signal reaches the program: a timer without interval is over by that. If it has been set again meanwhile, the next look tells.
pub fn delivered(e: &mut Engine, signal: i32) {
    let timers = KINDS.iter().zip(&mut e.kernel.processor_timers);
    for (_, timer) in timers.filter(|((_, theirs), timer)| signal == *theirs && timer.interval == 0 && timer.left != 0)
    {
        timer.left = 0;
        e.kernel_dirty = true;
    }
}

/// Looks at the timers that the program has set. Before a commit, all other threads stand still.
pub fn look(e: &mut Engine, t: &Thread) {
    if e.kernel.processor_timers.iter().all(|timer| timer.used == 0) {
        return;
    }
    let mut pending = 0u64;
    // SAFETY: asks only; the kernel writes eight bytes.
    unsafe { syscall!(nr::RT_SIGPENDING, &raw mut pending, 8) };
    for (place, (which, signal)) in KINDS.into_iter().enumerate() {
        let before = e.kernel.processor_timers[place];
        if before.used == 0 {
            continue;
        }
        let is_due = (pending & bit(signal) != 0 || is_in_hand(t, signal)) as u32;
        let is_ignored = e.kernel.actions[signal as usize].handler == SIG_IGN;
        let (interval, left) = match ask(which) {
            None => (before.interval, before.left),
            // Over, or about to fire: until somebody has taken its signal, or the kernel has thrown that away.
            Some((0, 0)) if before.left == 0 || is_due != 0 || is_ignored => (0, 0),
            Some((interval, left)) => (interval, left.max(SHORTEST_NS)),
        };
        let used = (left != 0 || is_due != 0) as u32;
        let now = ProcessorTimer { used, is_due, interval, left };
        e.kernel_dirty |= now != before;
        e.kernel.processor_timers[place] = now;
    }
}

/// Interval and what is left; `None`: that may not be asked.
fn ask(which: u64) -> Option<(u64, u64)> {
    if !call_filters::permit(wish::GETITIMER) {
        return None;
    }
    let mut timer = [0u64; 4];
    // SAFETY: asks only; the kernel writes 32 bytes.
    let r = unsafe { syscall!(nr::GETITIMER, which, timer.as_mut_ptr()) };
    (r == 0).then(|| (nanoseconds([timer[0], timer[1]]), nanoseconds([timer[2], timer[3]])))
}

/// Has the kernel handed it to a thread which has not got it yet?
fn is_in_hand(t: &Thread, signal: i32) -> bool {
    let has = |t: &Thread| t.pending.load(Relaxed) & pending_bit::SIGNAL != 0 && t.siginfo[0] as i32 == signal;
    has(t) || world::find(has).is_some()
}

/// Those that the program has had since before the engine began.
pub fn find(e: &mut Engine) {
    for (place, (which, signal)) in KINDS.into_iter().enumerate() {
        if matches!(ask(which), Some((interval, left)) if (interval, left) != (0, 0)) {
            will_make(signal);
            e.kernel.processor_timers[place].used = 1;
        }
    }
    // SAFETY: the engine begins in this thread, which is at its gate.
    look(e, unsafe { thread::current() });
}

/// Sets the committed timers in a restored process, which has all signals blocked, and has its predecessor's timers if `in_place`.
pub fn restore(e: &Engine, in_place: bool) {
    if without(Mutant::Timer) {
        return;
    }
    for ((which, signal), timer) in KINDS.into_iter().zip(&e.kernel.processor_timers) {
        if timer.used != 0 {
            will_make(signal);
        }
        if timer.left != 0 || in_place && control().timed.load(Relaxed) & bit(signal) != 0 {
            let ([a, b], [c, d]) = (timeval(timer.interval), timeval(timer.left));
            let value = [a, b, c, d];
            // SAFETY: sets the timer of this process.
            unsafe { syscall!(nr::SETITIMER, which, value.as_ptr(), 0) };
        }
        if timer.is_due != 0 {
            let mut info = [0; 16];
            (info[0], info[1]) = (signal as u64, SI_KERNEL as u64);
            queued::send(&info);
        }
    }
}
