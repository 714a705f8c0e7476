//! CLOCK_MONOTONIC, which the engine's time stamps are in.

use std::time::{Duration, SystemTime};

/// Nanoseconds since some moment before boot, the same in every process.
pub fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time stamp counter of the processor, which all of them agree on.
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds from one tick of the time stamp counter to the next: measured, which takes a millisecond.
pub fn ns_per_tick() -> f64 {
    let (tsc, ns) = (ticks(), monotonic());
    std::thread::sleep(Duration::from_millis(1));
    (monotonic() - ns) as f64 / (ticks() - tsc) as f64
}

/// The time of day at a moment of the monotonic clock that is past.
pub fn time_of_day(monotonic_ns: u64) -> SystemTime {
    SystemTime::now() - Duration::from_nanos(monotonic().saturating_sub(monotonic_ns))
}
