//! The engine's side of the control page.

use crate::sys::{futex_wake, now_ns};
use core::sync::atomic::{fence, Ordering::*};
use outlast_image::control::Control;
use outlast_image::degradation::Degradation;
use outlast_image::event::{event_kind, Event, EVENTS};
use outlast_image::layout::{session, SESSION_BASE};

/// The control page.
#[inline(always)]
pub fn control() -> &'static Control {
    // SAFETY: the session is mapped before the engine's first instruction and never unmapped; all fields are atomics.
    unsafe { &*((SESSION_BASE + session::CONTROL) as *const Control) }
}

/// Says where the program is now; see `outlast_image::event::phase`.
#[inline(always)]
pub fn phase(p: u32) {
    control().phase.store(p, Relaxed);
}

/// Appends to the ring of events that the supervisor writes to the log.
pub fn event(kind: u32, rung: u32, duration_ns: u64, arg: u64, arg2: u64) {
    let c = control();
    let n = c.events.load(Relaxed) as usize;
    let slot = (SESSION_BASE + session::EVENTS) as *mut Event;
    let e = Event { time_ns: now_ns(), kind, rung, duration_ns, arg, arg2 };
    // SAFETY: the slot lies in the ring; one writer.
    unsafe { slot.add(n % EVENTS).write_volatile(e) };
    fence(Release);
    c.events.store(n as u32 + 1, Release);
    futex_wake(&c.events);
}

/// Notes a degradation, once.
pub fn degrade(d: Degradation) {
    if control().degradations.fetch_or(d.bit(), Relaxed) & d.bit() == 0 {
        event(event_kind::DEGRADATION, 0, 0, d as u64, 0);
    }
}

/// Is it known that this cannot be preserved?
pub fn is_degraded(d: Degradation) -> bool {
    control().degradations.load(Relaxed) & d.bit() != 0
}

/// An error of the engine itself: noted, then the process ends by SIGKILL so that it is restored from the last
/// commit; the supervisor bounds how often.
#[cold]
pub fn engine_error(line: u32, errno: i64) -> ! {
    let c = control();
    c.error_line.store(line, Relaxed);
    c.error_number.store(errno as i32, Relaxed);
    event(event_kind::ENGINE_ERROR, 0, 0, line as u64, errno as u64);
    die()
}

/// A fault within the engine, likewise.
#[cold]
pub fn engine_fault(sig: i32, rip: u64, address: u64) -> ! {
    control().error_line.store(line!(), Relaxed);
    event(event_kind::ENGINE_FAULT, sig as u32, 0, rip, address);
    die()
}

/// The store cannot be read, so that there is nothing to restore: the process ends, and the supervisor says why.
#[cold]
pub fn unreadable(why: u32) -> ! {
    control().unreadable.store(why, Release);
    die()
}

/// The same, for want of a file that the program maps.
#[cold]
pub fn lost_file(path: &[u8]) -> ! {
    for (byte, to) in path.iter().chain(&[0]).zip(&control().lost_file) {
        to.store(*byte, Relaxed);
    }
    unreadable(outlast_image::control::unreadable::FILE)
}

/// Ends the process, all of its threads, by SIGKILL.
pub fn die() -> ! {
    loop {
        // SAFETY: the process ends here.
        unsafe {
            let pid = crate::sys::syscall!(crate::sys::nr::GETPID);
            crate::sys::syscall!(crate::sys::nr::KILL, pid, 9);
            crate::sys::syscall!(crate::sys::nr::EXIT_GROUP, 137);
        }
    }
}

macro_rules! fail {
    ($errno:expr) => {
        $crate::control::engine_error(line!(), $errno)
    };
}
pub(crate) use fail;
