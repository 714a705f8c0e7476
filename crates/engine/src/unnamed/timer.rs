//! timerfds: when they expire, by their own clock and, for a machine that has been rebooted, by the wall clock.

use super::fdinfo;
use crate::call_filters;
use crate::own_descriptors::Passing;
use crate::proc;
use crate::sys::{err, nr, syscall};
use outlast_image::descriptor::Timer;

const CLOCK_REALTIME: u32 = 0;
const CLOCK_REALTIME_ALARM: u32 = 8;
const TFD_TIMER_ABSTIME: u32 = 1;
const SECOND: u64 = 1_000_000_000;

/// How it stands.
pub fn describe(fd: i32) -> Timer {
    let (mut spec, mut buf) = ([0u64; 4], [0u8; 512]);
    if !call_filters::exist() {
        // One that has expired is set to its next time by that, as by anybody who looks.
        // SAFETY: the kernel writes 32 bytes.
        unsafe { syscall!(nr::TIMERFD_GETTIME, fd, spec.as_mut_ptr()) };
    }
    let text = proc::info(fd, &mut buf);
    let [clock] = fdinfo::numbers(text, b"clockid:", 10);
    let [ticks] = fdinfo::numbers(text, b"ticks:", 10);
    let [flags] = fdinfo::numbers(text, b"settime flags:", 8);
    let ns = |[s, ns]: [u64; 2]| s.saturating_mul(SECOND).saturating_add(ns);
    let left = ns(fdinfo::numbers(text, b"it_value:", 10));
    let interval = ns(fdinfo::numbers(text, b"it_interval:", 10));
    let mut timer = Timer { clock: clock as u32, flags: flags as u32, interval, ..Timer::default() };
    if left == 0 && ticks == 0 {
        return timer;
    }
    let first = |now: u64| now.saturating_add(left).saturating_sub(interval.saturating_mul(ticks)).max(1);
    timer.deadline = first(now(timer.clock));
    timer.deadline_real = first(now(CLOCK_REALTIME));
    timer.boot = boot();
    timer
}

/// Makes one that stands so; it has these flags of an open file. The descriptor.
pub fn make(timer: &Timer, flags: u64) -> i64 {
    // SAFETY: makes a timer.
    let fd = unsafe { syscall!(nr::TIMERFD_CREATE, timer.clock, flags) };
    if err::is(fd) || timer.deadline == 0 {
        return fd;
    }
    let is_real = matches!(timer.clock, CLOCK_REALTIME | CLOCK_REALTIME_ALARM);
    let deadline = if is_real || timer.boot == boot() {
        timer.deadline
    } else {
        let (own, real) = (now(timer.clock), now(CLOCK_REALTIME));
        own.saturating_add(timer.deadline_real.saturating_sub(real))
            .saturating_sub(real.saturating_sub(timer.deadline_real))
            .max(1)
    };
    let split = |ns: u64| [ns / SECOND, ns % SECOND];
    let ([a, b], [c, d]) = (split(timer.interval), split(deadline));
    let spec = [a, b, c, d];
    // SAFETY: sets the timer that was just made.
    let r = unsafe { syscall!(nr::TIMERFD_SETTIME, fd, timer.flags | TFD_TIMER_ABSTIME, spec.as_ptr(), 0) };
    if err::is(r) {
        // SAFETY: closes it again.
        unsafe { syscall!(nr::CLOSE, fd) };
        return r;
    }
    fd
}

fn now(clock: u32) -> u64 {
    let mut t = [0u64; 2];
    // SAFETY: the kernel writes the 16 bytes of `t`.
    unsafe { syscall!(nr::CLOCK_GETTIME, clock, t.as_mut_ptr()) };
    t[0].saturating_mul(SECOND).saturating_add(t[1])
}

/// A number that no other boot of the machine has.
fn boot() -> u64 {
    let mut id = [0u8; 36];
    if let Ok(file) = Passing::open(c"/proc/sys/kernel/random/boot_id".as_ptr().cast(), 0) {
        // SAFETY: reads into the buffer.
        unsafe { syscall!(nr::READ, file.fd, id.as_mut_ptr(), id.len()) };
    }
    // FNV-1a.
    id.iter().fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
