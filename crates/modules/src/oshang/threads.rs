//! Threads of protected programs that could run and do not: the time-stamp of RMK's §5.1 for threads that are not scheduled.

use super::AGAIN;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::schl::{Starved, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Default)]
pub struct Threads {
    seen: BTreeMap<i32, Seen>,
    /// Since the look before.
    passed: Duration,
}

struct Seen {
    ran: Duration,
    slices: u64,
    /// How long it has been seen to wait.
    waited: Duration,
    told: Option<Duration>,
}

impl Threads {
    /// Time goes on.
    pub fn pass(&mut self, passed: Duration) {
        self.passed += passed;
    }

    /// These could run now, and all others could not.
    pub fn see(&mut self, threads: &[Thread], at: Duration, settings: &Settings) -> Vec<Starved> {
        let passed = std::mem::take(&mut self.passed);
        let there: BTreeSet<i32> = threads.iter().map(|thread| thread.thread).collect();
        self.seen.retain(|thread, _| there.contains(thread));
        threads.iter().filter_map(|thread| self.see_one(thread, at, passed, settings)).collect()
    }

    fn see_one(&mut self, thread: &Thread, at: Duration, passed: Duration, settings: &Settings) -> Option<Starved> {
        let (ran, slices) = (thread.ran, thread.slices);
        let new = || Seen { ran, slices, waited: Duration::ZERO, told: None };
        let is_new = !self.seen.contains_key(&thread.thread);
        let seen = self.seen.entry(thread.thread).or_insert_with(new);
        if is_new {
            return None;
        }
        let has_run = (seen.ran, seen.slices) != (ran, slices);
        (seen.ran, seen.slices) = (ran, slices);
        seen.waited = if has_run { Duration::ZERO } else { seen.waited + passed };
        let is_news = seen.told.is_none_or(|told| at.saturating_sub(told) >= AGAIN);
        if seen.waited <= settings.timeout || !is_news {
            return None;
        }
        seen.told = Some(at);
        Some(Starved::Thread { thread: thread.clone(), waited: seen.waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(thread: i32, ran: u64, slices: u64) -> Thread {
        let ran = Duration::from_millis(ran);
        Thread { program: "it".into(), process: 1, thread, ran, slices, processor: 0 }
    }

    /// The looks, a second apart, at which something is told of.
    fn told(looks: impl Iterator<Item = Vec<Thread>>) -> Vec<usize> {
        let mut threads = Threads::default();
        let mut look = |(n, all): (usize, Vec<Thread>)| {
            threads.pass(Duration::from_secs(1));
            !threads.see(&all, Duration::from_secs(n as u64), &Settings::default()).is_empty()
        };
        looks.enumerate().filter_map(|(n, all)| look((n, all)).then_some(n)).collect()
    }

    #[test]
    fn who_does_not_get_a_processor_for_five_seconds_is_told_of_and_not_all_the_time() {
        assert_eq!(told((0..700).map(|_| vec![thread(1, 10, 10)])), [6, 606]);
    }

    #[test]
    fn who_runs_now_and_then_or_waits_for_something_else_is_not_starved() {
        assert_eq!(told((0..700).map(|n| vec![thread(1, n, 10)])), []);
        assert_eq!(told((0..700).map(|n| vec![thread(1, 10, n)])), []);
        // In five of six looks it could run.
        let now_and_then = |n| if n % 6 == 0 { Vec::new() } else { vec![thread(1, 10, 10)] };
        assert_eq!(told((0..700).map(now_and_then)), []);
    }
}
