//! What threads compute themselves: while a commit is taken it is the engine that computes. How long a commit takes depends on what was
//! written before, and says nothing of the section in which it is taken.

use libc::pid_t;
use outlast_interfaces::pmc::Count;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of each thread the count at the last look, and what of that was the engine's.
#[derive(Default)]
pub struct OwnTime(BTreeMap<pid_t, (Duration, Duration)>);

impl OwnTime {
    /// What was counted since the last look is held to be of the kind that is met now.
    pub fn look(&mut self, counts: &[Count], is_engines: bool) {
        self.0.retain(|thread, _| counts.iter().any(|count| count.thread == *thread));
        for &Count { thread, count, .. } in counts {
            let (last, engines) = self.0.entry(thread).or_insert((count, Duration::ZERO));
            match count.checked_sub(*last) {
                Some(since) if is_engines => *engines += since,
                Some(_) => {}
                // The kernel has given the number to another thread.
                None => *engines = Duration::ZERO,
            }
            *last = count;
        }
    }

    /// A thread's count without the engine's part.
    pub fn of(&self, count: &Count) -> Duration {
        let engines = self.0.get(&count.thread).map_or(Duration::ZERO, |(_, engines)| *engines);
        count.count.saturating_sub(engines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::pmc::Activity;

    fn count(thread: i32, ms: u64) -> Count {
        let count = Duration::from_millis(ms);
        Count { thread, section: 0, run: 0, count, slices: 0, activity: Activity::Runs, wait: None }
    }

    #[test]
    fn what_passes_while_commits_are_taken_is_not_a_threads_own() {
        let mut own = OwnTime::default();
        let mut of = |thread, ms, is_engines| {
            let counts = [count(thread, ms)];
            own.look(&counts, is_engines);
            own.of(&counts[0]).as_millis()
        };
        assert_eq!(of(1, 1000, false), 1000);
        assert_eq!(of(1, 1100, false), 1100);
        assert_eq!(of(1, 5100, true), 1100);
        assert_eq!(of(1, 5200, false), 1200);
        // Another one of this number; and one that is new.
        assert_eq!(of(1, 7, true), 7);
        assert_eq!(of(2, 300, true), 300);
    }
}
