//! The counter array: each thread, the section it is in, and what it has computed there (RMK, §5, figure 6). A thread is in one section at a
//! time, since they begin and end with its system calls.

use super::sections::Sections;
use super::unscheduled::TimeStamp;
use super::waiting;
use outlast_interfaces::hang::Settings;
use outlast_interfaces::pmc::{Activity, Count, Spent, Wait};
use outlast_interfaces::proc::{Hang, Starvation, Stays};
use std::collections::BTreeMap;

/// Of one program.
pub struct Threads {
    settings: Settings,
    sections: Sections<u64>,
    seen: BTreeMap<i32, Seen>,
}

/// A thread, as it was seen last.
struct Seen {
    section: u64,
    run: u64,
    /// What it had spent when it was first seen in the section, and now.
    began: Spent,
    now: Spent,
    /// It was seen in another one before.
    has_moved: bool,
    /// What it waits for, and how often in a row it was seen to wait for the same as the time before.
    wait: Option<Wait>,
    waits: u32,
    stamp: TimeStamp,
}

/// So often a thread is seen to wait for the same before it is taken to stay there: what is read of it and of the lock is not of one moment.
const WAITS: u32 = 2;

impl Threads {
    pub fn new(settings: Settings) -> Self {
        Self { settings, sections: Sections::default(), seen: BTreeMap::new() }
    }

    /// From now on.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The program's process has ended: whatever goes on does so elsewhere. What is known of sections stays true.
    pub fn have_ended(&mut self) {
        self.seen.clear();
    }

    /// The program is another one, or another state of it.
    pub fn are_others(&mut self) {
        *self = Self::new(self.settings);
    }

    /// Takes note of how far all threads are. A thread that should have left its section by now, if there is one.
    pub fn see(&mut self, counts: &[Count]) -> Option<Hang> {
        self.seen.retain(|thread, _| counts.iter().any(|count| count.thread == *thread));
        let hangs = counts.iter().filter_map(|count| self.see_one(count)).next();
        hangs.or_else(|| self.deadlock(counts))
    }

    /// A thread that does not get on, and does not compute either; after [`Self::see`].
    pub fn starved(&mut self, counts: &[Count]) -> Option<Starvation> {
        let Settings { every, unscheduled, .. } = self.settings;
        // All of them are looked at; another one's turn to be told of is a look later at the earliest.
        let starved = counts.iter().filter_map(|count| {
            let seen = self.seen.get_mut(&count.thread)?;
            let waited = seen.stamp.see(count, every, unscheduled)?;
            let could_run = count.activity == Activity::Runs;
            Some(Starvation { thread: count.thread, section: seen.section, could_run, waited })
        });
        starved.collect::<Vec<_>>().into_iter().next()
    }

    /// Threads that wait for each other, and did so when they were seen before.
    fn deadlock(&self, counts: &[Count]) -> Option<Hang> {
        let stays = |count: &&Count| self.seen.get(&count.thread).is_some_and(|seen| seen.waits >= WAITS);
        let waits = counts.iter().filter(stays).filter_map(|count| Some((count.thread, count.wait?))).collect();
        let cycle = waiting::cycle(&waits)?;
        let (thread, seen) = cycle.first().and_then(|(thread, _)| Some((*thread, self.seen.get(thread)?)))?;
        let (section, has_moved) = (seen.section, seen.has_moved);
        Some(Hang { thread, section, has_moved, why: Stays::Deadlock(cycle) })
    }

    fn see_one(&mut self, count: &Count) -> Option<Hang> {
        let begins = |has_moved| Seen {
            section: count.section,
            run: count.run,
            began: count.spent,
            now: count.spent,
            has_moved,
            wait: None,
            waits: 0,
            stamp: TimeStamp::default(),
        };
        let seen = self.seen.entry(count.thread).or_insert_with(|| begins(false));
        // Less than before: the kernel has given the number to another thread.
        if count.spent.time < seen.now.time {
            *seen = begins(false);
        } else if (seen.run, seen.section) != (count.run, count.section) {
            self.sections.left(seen.section, count.section, 1, seen.now.since(seen.began));
            *seen = begins(true);
        }
        seen.waits = if count.wait == seen.wait { seen.waits.saturating_add(1) } else { 0 };
        seen.wait = count.wait;
        seen.now = count.spent;
        let Settings { threshold, limit, .. } = self.settings;
        let spent = seen.now.since(seen.began);
        let check = self.sections.check_value(seen.section, spent, threshold).into_iter().chain(limit).min()?;
        let (thread, section, has_moved) = (count.thread, seen.section, seen.has_moved);
        let count = spent.time;
        (count > check).then_some(Hang { thread, section, has_moved, why: Stays::Computes { count, check } })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sections::TRAINED;
    use super::*;
    use outlast_interfaces::pmc::Lock;
    use std::time::Duration;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn settings(limit: Option<Duration>) -> Settings {
        Settings { every: ms(10), threshold: ms(100), limit, unscheduled: ms(5000) }
    }

    fn at(thread: i32, section: u64, run: u64, count: u64) -> Count {
        let activity = Activity::Runs;
        Count { thread, section, run, spent: Spent::time(ms(count)), slices: 0, activity, wait: None }
    }

    /// Has seen thread 1 leave section 7 so often; its time is `TRAINED` ms then.
    fn trained() -> Threads {
        let mut threads = Threads::new(settings(None));
        for n in 0..=TRAINED {
            assert_eq!(threads.see(&[at(1, 7, n, n)]), None);
        }
        threads
    }

    #[test]
    fn a_thread_that_stays_in_a_known_section_is_flagged_and_one_that_leaves_it_is_not() {
        let mut threads = trained();
        for n in 0..1000 {
            assert_eq!(threads.see(&[at(1, 7, TRAINED + n, TRAINED + 90 * n)]), None);
        }
        let (run, count) = (TRAINED + 999, TRAINED + 90 * 999);
        assert_eq!(threads.see(&[at(1, 7, run, count + 100)]), None);
        let hang = threads.see(&[at(1, 7, run, count + 101)]).expect("it hangs");
        let why = Stays::Computes { count: ms(101), check: ms(100) };
        assert_eq!(hang, Hang { thread: 1, section: 7, has_moved: true, why });
    }

    #[test]
    fn time_that_a_thread_waits_is_no_computation() {
        let mut threads = trained();
        for _ in 0..10_000 {
            assert_eq!(threads.see(&[at(1, 7, TRAINED, TRAINED)]), None);
        }
    }

    #[test]
    fn an_unknown_section_may_take_as_long_as_it_likes_unless_there_is_a_limit() {
        let mut threads = trained();
        assert_eq!(threads.see(&[at(1, 8, 999, 1000)]), None);
        assert_eq!(threads.see(&[at(1, 8, 999, 100_000)]), None);
        let mut threads = Threads::new(settings(Some(ms(2000))));
        assert_eq!(threads.see(&[at(1, 8, 999, 1000)]), None);
        assert_eq!(threads.see(&[at(1, 8, 999, 3000)]), None);
        assert!(threads.see(&[at(1, 8, 999, 3001)]).is_some());
    }

    #[test]
    fn one_of_many_threads_is_found() {
        let mut threads = trained();
        let others = |n: u64| (2..40).map(move |thread| at(thread, 7, n, n));
        for n in 0..5 {
            let counts: Vec<_> = others(n).chain([at(1, 7, TRAINED, TRAINED + 30 * n)]).collect();
            assert_eq!(threads.see(&counts).map(|hang| hang.thread), (n > 3).then_some(1));
        }
    }

    fn waiting(thread: i32, run: u64, owner: i32) -> Count {
        let wait = Wait { lock: Lock::Mutex, at: 0x1000 + owner as u64, owner };
        Count { wait: Some(wait), ..at(thread, 7, run, 0) }
    }

    #[test]
    fn threads_that_wait_for_each_other_are_flagged_once_they_were_seen_to_stay_there() {
        let mut threads = Threads::new(settings(None));
        let counts = [at(1, 7, 1, 0), waiting(2, 1, 3), waiting(3, 1, 2), waiting(4, 1, 2)];
        let hangs: Vec<_> = (0..4).map(|_| threads.see(&counts)).collect();
        assert!(hangs[..2].iter().all(Option::is_none), "{hangs:?}");
        let Some(Hang { why: Stays::Deadlock(cycle), .. }) = &hangs[3] else { panic!("{hangs:?}") };
        assert_eq!(cycle.iter().map(|(thread, _)| *thread).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn threads_that_wait_for_each_other_in_turn_are_not() {
        let mut threads = Threads::new(settings(None));
        for run in 0..1000 {
            assert_eq!(threads.see(&[waiting(2, run, 3), waiting(3, run, 2)]), None);
            assert_eq!(threads.see(&[waiting(2, run, 3), at(3, 7, run, 0)]), None);
        }
    }

    #[test]
    fn a_recovered_program_keeps_what_was_learnt_and_one_that_hangs_at_once_has_not_moved() {
        let mut threads = trained();
        threads.have_ended();
        assert_eq!(threads.see(&[at(1, 7, 5, 0)]), None);
        assert_eq!(threads.see(&[at(1, 7, 5, 101)]).map(|hang| hang.has_moved), Some(false));
        threads.are_others();
        assert_eq!(threads.see(&[at(1, 7, 5, 0)]), None);
        assert_eq!(threads.see(&[at(1, 7, 5, 10_000)]), None);
    }
}
