//! The time-stamp for a thread that is not scheduled (RMK, §5.1). A section ends with the return of a call, and in a call a thread may wait for as
//! long as it likes; but one that could run, or that the kernel cannot interrupt, should get on.
//!
//! Neither is ended: the next process would get no processor either, and one that cannot be interrupted does not end. Somebody
//! is told. Who is stopped, traced or frozen has no time-stamp: a person wants it so.

use outlast_interfaces::pmc::{Activity, Count};
use std::time::Duration;

/// After so long the kernel, too, by its own defaults, tells of a thread that cannot be interrupted.
const STUCK: Duration = Duration::from_secs(120);

/// How long a thread has not got on. Time in which nobody looked does not count.
#[derive(Default)]
pub struct TimeStamp {
    activity: Option<Activity>,
    slices: u64,
    count: Duration,
    waited: Duration,
    is_told: bool,
}

impl TimeStamp {
    /// It was seen again after this time. How long it has waited, when that is too long and was not told of.
    pub fn see(&mut self, count: &Count, every: Duration, unscheduled: Duration) -> Option<Duration> {
        let stays =
            self.activity == Some(count.activity) && (self.slices, self.count) == (count.slices, count.spent.time);
        let patience = match count.activity {
            Activity::Runs => Some(unscheduled),
            Activity::Stuck => Some(STUCK),
            Activity::Waits | Activity::Held => None,
        };
        match patience.filter(|_| stays) {
            Some(patience) => {
                self.waited += every;
                let is_news = self.waited > patience && !std::mem::replace(&mut self.is_told, self.waited > patience);
                is_news.then_some(self.waited)
            }
            None => {
                let (slices, computed) = (count.slices, count.spent.time);
                *self = Self { activity: Some(count.activity), slices, count: computed, ..Self::default() };
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::pmc::Spent;

    /// At which of these looks, ten a second, something is told of.
    fn told(looks: usize, count: impl Fn(u64) -> (Activity, u64)) -> Vec<usize> {
        let mut stamp = TimeStamp::default();
        let mut look = |n: usize| {
            let (activity, slices) = count(n as u64);
            let count = Count { thread: 1, section: 7, run: 1, spent: Spent::default(), slices, activity, wait: None };
            stamp.see(&count, Duration::from_millis(100), Duration::from_secs(5)).is_some()
        };
        (0..looks).filter(|n| look(*n)).collect()
    }

    #[test]
    fn who_could_run_and_does_not_is_told_of_once() {
        assert_eq!(told(1000, |_| (Activity::Runs, 3)), [51]);
        assert_eq!(told(1000, |n| (Activity::Runs, n / 40)), []);
        // It ran in between, and waits again.
        assert_eq!(told(200, |n| (Activity::Runs, n / 100)), [51, 151]);
    }

    #[test]
    fn who_is_held_or_waits_is_not_told_of_however_long_it_takes() {
        assert_eq!(told(10_000, |_| (Activity::Held, 3)), []);
        assert_eq!(told(10_000, |_| (Activity::Waits, 3)), []);
        // Stopped again and again: what it waits for in between is little.
        assert_eq!(told(10_000, |n| (if n % 40 < 20 { Activity::Held } else { Activity::Runs }, 3)), []);
    }

    #[test]
    fn who_cannot_be_interrupted_is_told_of_when_the_kernel_would_be_worried_too() {
        assert_eq!(told(3000, |_| (Activity::Stuck, 3)), [1201]);
        assert_eq!(told(3000, |n| (Activity::Stuck, n / 500)), []);
    }
}
