//! POSIX timers (timer_create): the kernel forgets them with the process, the kernel state keeps them. The program knows
//! them by their places in its table: the kernel's own numbers differ from process to process.

use crate::control::control;
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::numbers;
use crate::periodic::{Event, SIGEV_THREAD_ID, TIMER_CREATE, TIMER_DELETE, TIMER_SETTIME};
use crate::signals::{bit, signal_code};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use crate::world;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use outlast_image::kernel::{PosixTimer, TIMERS};
use outlast_image::mutant::Mutant;

const GETTIME: u64 = 224;
const GETOVERRUN: u64 = 225;

const TIMER_ABSTIME: u64 = 1;
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
pub const CLOCK_BOOTTIME: i32 = 7;
pub const CLOCK_BOOTTIME_ALARM: i32 = 9;
const SIGALRM: i32 = 14;
const SIGEV_NONE: i32 = 1;
const SI_TIMER: i32 = -2;

/// Calls that would go straight through the gate, but name a timer.
pub const STRAIGHT: [u64; 2] = [GETTIME, GETOVERRUN];

/// The kernel's number of each timer in this process, plus one; 0: none.
static LIVE: [AtomicI32; TIMERS] = [const { AtomicI32::new(0) }; TIMERS];

pub fn is_one(call: u64) -> bool {
    (TIMER_CREATE..=TIMER_DELETE).contains(&call)
}

/// Their effect is private: a rollback sets the committed timers again.
pub fn serve(e: &mut Engine, t: &Thread, call: &Call) -> i64 {
    if call.nr == TIMER_CREATE {
        return create(e, t, call);
    }
    let place = call.args[0] as i32 as usize;
    let Some(live) = LIVE.get(place).filter(|live| live.load(Relaxed) != 0) else { return err::EINVAL };
    let mut own = *call;
    own.args[0] = live.load(Relaxed) as u64 - 1;
    let r = native(&own);
    match call.nr {
        TIMER_SETTIME if r == 0 => set(e, place, call.args),
        TIMER_DELETE if r == 0 => {
            live.store(0, Relaxed);
            e.kernel.timers[place] = PosixTimer::NONE;
            e.kernel_dirty = true;
        }
        _ => {}
    }
    r
}

fn create(e: &mut Engine, t: &Thread, call: &Call) -> i64 {
    let [clock, event, id, ..] = call.args;
    let Some(place) = LIVE.iter().position(|live| live.load(Relaxed) == 0) else { return err::EAGAIN };
    let event = match event {
        0 => Event { value: place as u64, signal: SIGALRM, notify: 0, tid: 0, pad: [0; 11] },
        _ => match user::read::<Event>(event) {
            Some(event) => event,
            None => return err::EFAULT,
        },
    };
    let timer = PosixTimer {
        used: 1,
        clock: clock as i32,
        signal: event.signal,
        notify: event.notify,
        tid: event.tid as u32,
        value: event.value,
        ..PosixTimer::NONE
    };
    let r = make(t, place, &timer);
    if r != 0 {
        return r;
    }
    if !user::write(id, &(place as i32)) {
        forget(place);
        return err::EFAULT;
    }
    will_signal(&timer);
    e.kernel.timers[place] = timer;
    e.kernel_dirty = true;
    0
}

/// Its signals come again by themselves.
fn will_signal(timer: &PosixTimer) {
    if timer.notify != SIGEV_NONE {
        control().timed.fetch_or(bit(timer.signal), Relaxed);
    }
}

/// Has the kernel make it.
fn make(t: &Thread, place: usize, timer: &PosixTimer) -> i64 {
    let tid = match timer.notify {
        SIGEV_THREAD_ID if timer.tid != t.tid => match world::find(|other| other.tid == timer.tid) {
            Some((_, real)) => real,
            None => return err::EINVAL,
        },
        // SAFETY: gettid has no effect.
        _ => unsafe { syscall!(nr::GETTID) as u32 },
    };
    let (value, signal, notify) = (timer.value, timer.signal, timer.notify);
    let event = Event { value, signal, notify, tid: tid as i32, pad: [0; 11] };
    let mut id = 0i32;
    // SAFETY: the kernel reads the event and writes the number.
    let r =
        unsafe { syscall!(TIMER_CREATE, numbers::clock_to_kernel(timer.clock) as i64, &raw const event, &raw mut id) };
    if r == 0 {
        LIVE[place].store(id + 1, Relaxed);
    }
    r
}

fn forget(place: usize) {
    let id = LIVE[place].swap(0, Relaxed);
    if id != 0 {
        // SAFETY: the timer is this process's.
        unsafe { syscall!(TIMER_DELETE, id - 1) };
    }
}

fn set(e: &mut Engine, place: usize, args: [u64; 6]) {
    let Some(t) = user::read::<[u64; 4]>(args[2]) else { return };
    let ns = |s: u64, ns: u64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    let (interval, value) = (ns(t[0], t[1]), ns(t[2], t[3]));
    let timer = &mut e.kernel.timers[place];
    timer.interval = interval;
    timer.deadline = match value {
        0 => 0,
        _ if args[1] & TIMER_ABSTIME != 0 => value,
        _ => now(timer.clock).saturating_add(value),
    };
    e.kernel_dirty = true;
}

pub fn now(clock: i32) -> u64 {
    let mut t = [0u64; 2];
    // SAFETY: the kernel writes the 16 bytes of `t`.
    unsafe { syscall!(nr::CLOCK_GETTIME, clock as i64, t.as_mut_ptr()) };
    t[0] * 1_000_000_000 + t[1]
}

/// Does one of them make the signal?
pub fn makes(info: &[u64; 16]) -> bool {
    signal_code(info) == SI_TIMER
}

fn place_of(info: &[u64; 16]) -> Option<usize> {
    let id = info[2] as i32;
    LIVE.iter().position(|live| live.load(Relaxed) == id + 1)
}

/// Its signal reaches the program: what is left of the timer is its later times.
pub fn delivered(e: &mut Engine, info: &[u64; 16]) {
    if let Some(place) = place_of(info) {
        let timer = &mut e.kernel.timers[place];
        let times = 1 + (info[2] >> 32);
        timer.deadline = match timer.interval {
            0 => 0,
            interval => timer.deadline.saturating_add(interval.saturating_mul(times)),
        };
        e.kernel_dirty = true;
    }
}

/// The signal tells of the timer by the number that the program knows.
pub fn renumber(info: &mut [u64; 16]) {
    if let Some(place) = place_of(info) {
        info[2] = info[2] & !0xffff_ffff | place as u64;
    }
}

/// Sets the committed timers in a restored process, which still has its predecessor's if `in_place`. One whose time has
/// come meanwhile fires at once; one of processor time, of which the process has used none yet, begins anew.
pub fn restore(e: &Engine, t: &Thread, in_place: bool) {
    for (place, timer) in e.kernel.timers.iter().enumerate() {
        match in_place {
            true => forget(place),
            false => LIVE[place].store(0, Relaxed),
        }
        if timer.used != 0 {
            will_signal(timer);
        }
        if timer.used == 0 || without(Mutant::Timer) || make(t, place, timer) != 0 || timer.deadline == 0 {
            continue;
        }
        let of_processor =
            timer.clock < 0 || [CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID].contains(&timer.clock);
        let (flags, first) = match of_processor {
            true => (0, timer.interval.max(1_000_000)),
            false => (TIMER_ABSTIME, timer.deadline),
        };
        let split = |ns: u64| [ns / 1_000_000_000, ns % 1_000_000_000];
        let ([a, b], [c, d]) = (split(timer.interval), split(first));
        let value = [a, b, c, d];
        // SAFETY: sets the timer that was just made.
        unsafe { syscall!(TIMER_SETTIME, LIVE[place].load(Relaxed) - 1, flags, value.as_ptr(), 0) };
    }
}
