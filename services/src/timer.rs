//! Periodic timers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use outlast_glue_rt::Stop;

use crate::stubs::timer::Service;

#[derive(Clone, Copy)]
struct Timer {
    start: u64,
    period: u64,
    /// Periods that have been waited for.
    waited: u64,
}

#[derive(Clone, Default)]
pub struct Timers {
    last: u64,
    timers: HashMap<u64, Timer>,
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Service for Timers {
    fn timer_create(&mut self, _client: u32, start: u64, period: u64, waited: i64) -> Result<u64, Stop> {
        let waited = u64::try_from(waited).map_err(|_| Stop::Errno(libc::EINVAL))?;
        if period == 0 {
            return Err(Stop::Errno(libc::EINVAL));
        }
        self.last += 1;
        self.timers.insert(self.last, Timer { start, period, waited });
        Ok(self.last)
    }

    fn timer_wait(&mut self, _client: u32, timer: u64) -> Result<(i32, u32), Stop> {
        let timer = self.timers.get_mut(&timer).ok_or(Stop::Errno(libc::EBADF))?;
        let now = now();
        let ended = now.saturating_sub(timer.start) / timer.period;
        if ended > timer.waited {
            let passed = u32::try_from(ended - timer.waited).unwrap_or(u32::MAX);
            timer.waited += u64::from(passed);
            return Ok((0, passed));
        }
        let next = timer.period.saturating_mul(timer.waited + 1).saturating_add(timer.start);
        let left = Duration::from_nanos(next.saturating_sub(now));
        Err(Stop::Wait { until: Instant::now().checked_add(left) })
    }

    fn timer_remove(&mut self, _client: u32, timer: u64) -> Result<i32, Stop> {
        self.timers.remove(&timer).map(|_| 0).ok_or(Stop::Errno(libc::EBADF))
    }
}
