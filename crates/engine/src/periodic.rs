//! Commits at intervals, for computations that pass no gate.
//!
//! The clock is the thread's CPU time: a program that waits has nothing new to commit, and its waits must not be cut
//! short by the engine's timer. What a commit takes is not the program's time: after one that took a good part of an interval the next
//! begins anew, lest the program be left with the rest of it.

use crate::commit::commit_at_gate;
use crate::signals::SIGENGINE;
use crate::state::Engine;
use crate::sys::{now_ns, nr, syscall, tsc};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use outlast_image::inject::option;

const CLOCK_PROCESS_CPUTIME_ID: u64 = 2;
const CLOCK_THREAD_CPUTIME_ID: u64 = 3;
const SIGEV_SIGNAL: i32 = 0;
pub const SIGEV_THREAD_ID: i32 = 4;
pub const TIMER_CREATE: u64 = 222;
pub const TIMER_SETTIME: u64 = 223;
pub const TIMER_DELETE: u64 = 226;

/// With [`option::SPARING`], this many times what a commit took passes before the next.
const SHARE: u64 = 100;
/// From this part of an interval on a commit takes a good part of it.
const LARGE_PART: u64 = 8;

/// `struct sigevent`, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Event {
    pub value: u64,
    pub signal: i32,
    pub notify: i32,
    pub tid: i32,
    pub pad: [i32; 11],
}

/// Starts the timer of this process, if an interval is wanted.
pub fn start(e: &mut Engine) {
    let n = e.args.interval_ns;
    if n == 0 || e.timer != 0 {
        return;
    }
    if let Some(id) = knock_after(CLOCK_THREAD_CPUTIME_ID, n, n) {
        (e.timer, e.interval) = (id + 1, n);
    }
}

/// The same for all threads together, of which the kernel then knocks at one that runs.
pub fn start_for_all(e: &mut Engine) {
    let n = e.args.interval_ns;
    if n == 0 {
        return;
    }
    if e.timer > 0 {
        // SAFETY: the timer is the engine's own.
        unsafe { syscall!(TIMER_DELETE, e.timer - 1) };
    }
    e.timer = knock_at_all(CLOCK_PROCESS_CPUTIME_ID, n, n).map_or(0, |id| id + 1);
    e.interval = n;
}

/// Ends the timer of this process.
pub fn stop(e: &mut Engine) {
    let timer = core::mem::take(&mut e.timer);
    if timer > 0 {
        // SAFETY: the timer is the engine's own.
        unsafe { syscall!(TIMER_DELETE, timer - 1) };
    }
}

/// Another interval is wanted, or none.
pub fn restart(e: &mut Engine) {
    stop(e);
    match crate::world::has_several() {
        true => start_for_all(e),
        false => start(e),
    }
}

/// Has the kernel knock at this thread in `first_ns`, and every `then_ns` from then on if that is not 0. The timer's id.
pub fn knock_after(clock: u64, first_ns: u64, then_ns: u64) -> Option<i32> {
    knock(clock, SIGEV_THREAD_ID, first_ns, then_ns)
}

/// The same for whichever thread the kernel finds.
pub fn knock_at_all(clock: u64, first_ns: u64, then_ns: u64) -> Option<i32> {
    knock(clock, SIGEV_SIGNAL, first_ns, then_ns)
}

fn knock(clock: u64, notify: i32, first_ns: u64, then_ns: u64) -> Option<i32> {
    // SAFETY: creates a timer that signals this thread or process.
    unsafe {
        let tid = syscall!(nr::GETTID) as i32;
        let event = Event { value: 0, signal: SIGENGINE, notify, tid, pad: [0; 11] };
        let mut id = 0i32;
        if syscall!(TIMER_CREATE, clock, &raw const event, &raw mut id) != 0 {
            return None;
        }
        set(id, first_ns, then_ns);
        Some(id)
    }
}

/// Sets a timer of the engine's own; to 0: it does not run.
pub fn set(id: i32, first_ns: u64, then_ns: u64) {
    let [first, then] = [first_ns, then_ns].map(|ns| [ns / 1_000_000_000, ns % 1_000_000_000]);
    let spec = [then[0], then[1], first[0], first[1]];
    // SAFETY: the timer is the engine's own.
    unsafe { syscall!(TIMER_SETTIME, id, 0, spec.as_ptr(), 0) };
}

/// Are commits wanted at intervals?
pub fn is_on(e: &Engine) -> bool {
    e.args.interval_ns != 0
}

/// Commits if that is wanted at intervals. Called when the engine was knocked at.
pub fn tick(e: &mut Engine) {
    /// When a commit ended that took a good part of an interval.
    static LONG_UNTIL: AtomicU64 = AtomicU64::new(0);
    if !is_on(e) {
        return;
    }
    let began = now_ns();
    let since = began.saturating_sub(LONG_UNTIL.load(Relaxed));
    if e.timer > 0 && since < e.interval / LARGE_PART {
        // The timer has run out while that commit was made.
        return;
    }
    let ticks = tsc();
    commit_at_gate(e);
    e.hot.spans.tick(ticks, tsc());
    let ended = now_ns();
    let took = ended - began;
    let wanted = match e.args.options & option::SPARING {
        0 => e.interval,
        _ => (SHARE * took).max(e.args.interval_ns),
    };
    let is_other = wanted.abs_diff(e.interval) > e.interval / 4;
    let is_long = took > e.interval / LARGE_PART;
    if e.timer > 0 && (is_other || is_long) {
        e.interval = if is_other { wanted } else { e.interval };
        set(e.timer - 1, e.interval, e.interval);
        LONG_UNTIL.store(if is_long { ended } else { 0 }, Relaxed);
    }
}

/// Is `rip` inside a restartable sequence? A commit there would not be restarted when it is resumed.
pub fn in_critical_section(t: &Thread, rip: u64) -> bool {
    if t.rseq[0] == 0 {
        return false;
    }
    match user::read::<u64>(t.rseq[0] + 8) {
        Some(0) | None => false,
        // version, flags; start; length; abort address.
        Some(descriptor) => match user::read::<[u64; 3]>(descriptor) {
            Some([_, start, len]) => rip.wrapping_sub(start) < len,
            None => false,
        },
    }
}
