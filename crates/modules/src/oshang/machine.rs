//! What is known of one machine, this one or another node. Whatever that says it has seen is untrusted.

use super::processor::{Processor, Seen};
use super::threads::Threads;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::schl::{Look, Starved};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Default)]
pub struct Machine {
    before: Option<Duration>,
    processors: BTreeMap<u32, Processor>,
    threads: Threads,
}

impl Machine {
    /// What is starved and was not told of lately, and the processors on which somebody is to wait.
    pub fn see(&mut self, look: &Look, settings: &Settings) -> (Vec<Starved>, Vec<u32>) {
        let passed = look.at.saturating_sub(self.before.unwrap_or(look.at));
        self.before = Some(look.at);
        // Whoever looks was kept from it: what happened meanwhile is not known, and counts for no more than a look or two.
        let passed = passed.min(settings.every * 2);
        let (mut starved, mut probes) = (Vec::new(), Vec::new());
        for seen in &look.processors {
            let processor = self.processors.entry(seen.number).or_default();
            match processor.see(seen, look.at, passed, settings) {
                Seen::Well => (),
                Seen::Alone => probes.push(seen.number),
                Seen::Starves(what) => starved.push(what),
            }
        }
        if self.processors.len() != look.processors.len() {
            let there: BTreeSet<u32> = look.processors.iter().map(|seen| seen.number).collect();
            self.processors.retain(|number, _| there.contains(number));
        }
        self.threads.pass(passed);
        if let Some(threads) = &look.threads {
            starved.extend(self.threads.see(threads, look.at, settings));
        }
        (starved, probes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::schl::{self, Running, Thread};

    struct Random(fastrand::Rng);

    impl Random {
        fn next(&mut self, below: u64) -> u64 {
            self.0.u64(..below)
        }

        fn time(&mut self) -> Duration {
            match self.next(4) {
                0 => Duration::MAX,
                1 => Duration::ZERO,
                2 => Duration::MAX / 3,
                _ => Duration::from_millis(self.next(10_000)),
            }
        }

        fn number(&mut self) -> u32 {
            [0, 1, u32::MAX, self.next(1 << 32) as u32][self.next(4) as usize]
        }

        fn look(&mut self) -> Look {
            let processor = |random: &mut Self| schl::Processor {
                number: random.number(),
                switches: [0, 1, u64::MAX, random.next(1 << 40)][random.next(4) as usize],
                waiting: random.number(),
                runs: (random.next(4) > 0).then(|| Running {
                    thread: random.number() as i32,
                    process: random.number() as i32,
                    user: random.time(),
                    kernel: random.time(),
                    is_realtime: random.next(2) > 0,
                    yields: random.next(2),
                }),
                is_preempted: random.next(2) > 0,
            };
            let thread = |random: &mut Self| Thread {
                program: "p".into(),
                process: random.number() as i32,
                thread: random.number() as i32,
                ran: random.time(),
                slices: random.next(3),
                processor: random.number(),
            };
            Look {
                at: self.time(),
                processors: (0..self.next(6)).map(|_| processor(self)).collect(),
                threads: (self.next(3) > 0).then(|| (0..self.next(6)).map(|_| thread(self)).collect()),
            }
        }
    }

    #[test]
    fn whatever_another_node_says_it_saw_is_looked_at_and_nothing_of_it_stays_that_it_says_no_more() {
        let mut random = Random(fastrand::Rng::with_seed(7));
        let (mut machine, settings) = (Machine::default(), Settings::default());
        for _ in 0..200_000 {
            let look = random.look();
            machine.see(&look, &settings);
            assert!(machine.processors.len() <= look.processors.len(), "{look:?}");
        }
    }
}
