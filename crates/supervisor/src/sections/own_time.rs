//! What threads compute themselves: while a commit is taken it is the engine that computes. How long a commit takes depends on what was
//! written before, and says nothing of the section in which it is taken.

use libc::pid_t;
use outlast_interfaces::pmc::{Count, Spent};
use std::collections::BTreeMap;
const NOTHING: Spent = Spent { time: std::time::Duration::ZERO, instructions: Some(0) };

/// Of each thread what it had spent at the last look, and what of that was the engine's.
#[derive(Default)]
pub struct OwnTime(BTreeMap<pid_t, (Spent, Spent)>);

impl OwnTime {
    /// What was counted since the last look is held to be of the kind that is met now.
    pub fn look(&mut self, counts: &[Count], is_engines: bool) {
        self.0.retain(|thread, _| counts.iter().any(|count| count.thread == *thread));
        for &Count { thread, spent, .. } in counts {
            let (last, engines) = self.0.entry(thread).or_insert((spent, NOTHING));
            if spent.time < last.time {
                // The kernel has given the number to another thread.
                *engines = NOTHING;
            } else if is_engines {
                let since = spent.since(*last);
                engines.time += since.time;
                engines.instructions = engines.instructions.zip(since.instructions).map(|(a, b)| a + b);
            }
            *last = spent;
        }
    }

    /// What a thread has spent without the engine's part.
    pub fn of(&self, count: &Count) -> Spent {
        self.0.get(&count.thread).map_or(count.spent, |(_, engines)| count.spent.since(*engines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::pmc::Activity;
    use std::time::Duration;

    fn count(thread: i32, ms: u64) -> Count {
        let spent = Spent { time: Duration::from_millis(ms), instructions: Some(1000 * ms) };
        Count { thread, section: 0, run: 0, spent, slices: 0, activity: Activity::Runs, wait: None }
    }

    #[test]
    fn what_passes_while_commits_are_taken_is_not_a_threads_own() {
        let mut own = OwnTime::default();
        let mut of = |thread, ms, is_engines| {
            let counts = [count(thread, ms)];
            own.look(&counts, is_engines);
            let own = own.of(&counts[0]);
            assert_eq!(own.instructions, Some(1000 * own.time.as_millis() as u64));
            own.time.as_millis()
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
