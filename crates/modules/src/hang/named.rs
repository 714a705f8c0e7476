//! The counter array for sections that have names: each thread, the sections that it is in, one in the other or overlapping, and what it has
//! computed in each (RMK, §5, figure 6). The program counts its entries and tells its exits; the time is known at the looks. In a section
//! that begins and ends between two of them a thread has computed no longer than it has between the two.

use super::sections::Sections;
use outlast_interfaces::pmc::Spent;
use outlast_interfaces::proc::{Hang, Stays};
use outlast_interfaces::sect::{Inside, Left, Section, Thread, UNTOLD};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The exit of which nothing is known.
const UNKNOWN: u64 = u64::MAX - 1;
/// Of one thread more are not remembered: the program decides how many there are.
const MOST_RUNS: usize = 512;

/// Of one program.
pub struct Named {
    threshold: Duration,
    sections: Sections<Section>,
    seen: BTreeMap<i32, Seen>,
}

/// A thread, as it was seen last.
#[derive(Default)]
struct Seen {
    spent: Spent,
    /// It has left a section since it was seen first.
    has_moved: bool,
    inside: BTreeMap<Section, Run>,
    /// What it had left last by then.
    left: BTreeSet<(Section, u64)>,
}

struct Run {
    number: u64,
    /// What the thread had spent when it was first seen there.
    began: Spent,
}

impl Named {
    pub fn new(threshold: Duration) -> Self {
        Self { threshold, sections: Sections::default(), seen: BTreeMap::new() }
    }

    /// From now on.
    pub fn set(&mut self, threshold: Duration) {
        self.threshold = threshold;
    }

    /// The process has ended, or gone back: whatever goes on does so elsewhere. What is known of sections stays true.
    pub fn have_ended(&mut self) {
        self.seen.clear();
    }

    /// The program is another one, or another state of it.
    pub fn are_others(&mut self) {
        *self = Self::new(self.threshold);
    }

    /// Takes note of where all threads are. A thread that should have left a section by now, if there is one: of several sections the innermost.
    pub fn see(&mut self, threads: &[Thread]) -> Option<Hang> {
        self.seen.retain(|number, _| threads.iter().any(|thread| thread.thread == *number));
        threads.iter().filter_map(|thread| self.see_one(thread)).collect::<Vec<_>>().into_iter().next()
    }

    fn see_one(&mut self, thread: &Thread) -> Option<Hang> {
        let is_new = !self.seen.contains_key(&thread.thread);
        let seen = self.seen.entry(thread.thread).or_default();
        // Less than before: the kernel has given the number to another thread.
        if thread.spent.time < seen.spent.time {
            *seen = Seen::default();
        } else if !is_new {
            for (section, exit, times, spent) in seen.leaves(thread) {
                seen.has_moved = true;
                self.sections.left(section, exit, times, spent);
            }
        }
        seen.enters(thread);
        let lingers = |inside: &Inside| {
            let run = seen.inside.get(&inside.section).filter(|run| run.number == inside.run)?;
            let (spent, section) = (thread.spent.since(run.began), inside.section);
            let check = self.sections.check_value(section, spent, self.threshold);
            let check = check.filter(|check| spent.time > *check)?;
            Some(Stays::Lingers { section, count: spent.time, check })
        };
        let why = thread.inside.iter().rev().find_map(lingers)?;
        let Stays::Lingers { section, .. } = why else { return None };
        Some(Hang { thread: thread.thread, section: section.number(), has_moved: seen.has_moved, why })
    }
}

impl Seen {
    /// The exits that were taken since the last look: how often, and the most that was spent before one.
    fn leaves(&mut self, thread: &Thread) -> Vec<(Section, u64, u64, Spent)> {
        let mut exits: BTreeMap<(Section, u64), (u64, Spent)> = BTreeMap::new();
        let mut leaves = |section, exit, spent: Spent| {
            // When that was nobody knows.
            if exit == UNTOLD {
                return;
            }
            let (times, most) = exits.entry((section, exit)).or_insert((0, spent));
            *times += 1;
            if spent.amount() > most.amount() {
                *most = spent;
            }
        };
        let is_inside = |section: Section, run| thread.inside.iter().any(|i| (i.section, i.run) == (section, run));
        let mut counted = std::mem::take(&mut self.left);
        self.inside.retain(|section, run| {
            let stays = is_inside(*section, run.number);
            if !stays {
                let of_section = || thread.left.iter().rev().filter(|left| left.section == *section);
                // By the exit that it has taken, or else by the one that it takes now.
                let exit = of_section().find(|left| left.run == run.number).or_else(|| of_section().next());
                leaves(*section, exit.map_or(UNKNOWN, |left| left.exit), thread.spent.since(run.began));
                counted.insert((*section, run.number));
            }
            stays
        });
        let between = thread.spent.since(self.spent);
        for Left { section, run, exit } in &thread.left {
            if !counted.contains(&(*section, *run)) {
                leaves(*section, *exit, between);
            }
        }
        exits.into_iter().map(|((section, exit), (times, spent))| (section, exit, times, spent)).collect()
    }

    /// What is so now. A section that a thread has entered in itself again is the outermost one.
    fn enters(&mut self, thread: &Thread) {
        self.spent = thread.spent;
        self.left = thread.left.iter().take(MOST_RUNS).map(|left| (left.section, left.run)).collect();
        let mut outermost: BTreeMap<Section, u64> = BTreeMap::new();
        for inside in thread.inside.iter().take(MOST_RUNS) {
            outermost.entry(inside.section).or_insert(inside.run);
        }
        self.inside.retain(|section, run| outermost.get(section) == Some(&run.number));
        for (section, number) in outermost {
            self.inside.entry(section).or_insert(Run { number, began: thread.spent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sections::TRAINED;
    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(100);
    const OUTER: Section = Section::Named(1);
    const INNER: Section = Section::Function(2);

    fn thread(count: u64, inside: &[(Section, u64)], left: &[(Section, u64, u64)]) -> Thread {
        let inside = inside.iter().map(|&(section, run)| Inside { section, run }).collect();
        let left = left.iter().map(|&(section, run, exit)| Left { section, run, exit }).collect();
        Thread { thread: 1, spent: Spent::time(Duration::from_millis(count)), inside, left }
    }

    /// Has seen thread 1 leave both sections so often, a millisecond each time; its time is `TRAINED` ms then.
    fn trained() -> Named {
        let mut named = Named::new(THRESHOLD);
        for n in 0..=TRAINED {
            let left = [(INNER, 2 * n + 2, 7), (OUTER, 2 * n + 1, 7)];
            assert_eq!(named.see(&[thread(n, &[], &left)]), None);
        }
        named
    }

    #[test]
    fn the_innermost_section_that_is_not_left_in_time_is_flagged() {
        let mut named = trained();
        let inside = [(OUTER, 1001), (INNER, 1002)];
        assert_eq!(named.see(&[thread(100, &inside, &[])]), None);
        assert_eq!(named.see(&[thread(200, &inside, &[])]), None);
        let hang = named.see(&[thread(201, &inside, &[])]).expect("it hangs");
        let (count, check) = (Duration::from_millis(101), THRESHOLD);
        assert_eq!(hang.why, Stays::Lingers { section: INNER, count, check });
        assert!(hang.has_moved);
    }

    #[test]
    fn only_the_outer_section_hangs_if_the_inner_one_is_left_and_entered() {
        let mut named = trained();
        let mut flagged = None;
        for n in 0..20 {
            let (run, count) = (1002 + n, 100 + 20 * n);
            let left = [(INNER, run - 1, 7)];
            flagged = flagged.or(named.see(&[thread(count, &[(OUTER, 1001), (INNER, run)], &left)]));
        }
        assert!(matches!(flagged.unwrap().why, Stays::Lingers { section: OUTER, .. }));
    }

    #[test]
    fn sections_that_overlap_are_two() {
        let mut named = trained();
        assert_eq!(named.see(&[thread(100, &[(OUTER, 1001), (INNER, 1002)], &[])]), None);
        // The one that was entered first is left first.
        assert_eq!(named.see(&[thread(190, &[(INNER, 1002)], &[(OUTER, 1001, 3)])]), None);
        let hang = named.see(&[thread(201, &[(INNER, 1002)], &[(OUTER, 1001, 3)])]).expect("it hangs");
        assert!(matches!(hang.why, Stays::Lingers { section: INNER, .. }));
    }

    #[test]
    fn what_is_long_by_one_exit_may_be_as_long_again() {
        let mut named = Named::new(THRESHOLD);
        let mut at = 0;
        for n in 0..TRAINED {
            let run = 2 * n + 1;
            named.see(&[thread(at, &[(OUTER, run)], &[])]);
            at += 500;
            assert_eq!(named.see(&[thread(at, &[(OUTER, run)], &[])]), None);
            // And in between many that are short.
            assert_eq!(named.see(&[thread(at + 1, &[], &[(OUTER, run, 0), (OUTER, run + 1, 1)])]), None);
            at += 1;
        }
        named.see(&[thread(at, &[(OUTER, 1001)], &[])]);
        assert_eq!(named.see(&[thread(at + 1500, &[(OUTER, 1001)], &[])]), None);
        let hang = named.see(&[thread(at + 1600, &[(OUTER, 1001)], &[])]).expect("it hangs");
        assert!(matches!(hang.why, Stays::Lingers { check, .. } if check == Duration::from_millis(1503)), "{hang:?}");
    }

    #[test]
    fn who_is_always_in_a_section_of_which_nothing_is_known_does_not_hang() {
        let mut named = trained();
        for n in 0..100 {
            assert_eq!(named.see(&[thread(1000 * n, &[(Section::Function(77), 3)], &[])]), None);
        }
    }

    #[test]
    fn after_a_recovery_counting_begins_anew_and_what_was_learnt_stays() {
        let mut named = trained();
        named.see(&[thread(100, &[(OUTER, 1001)], &[])]);
        named.have_ended();
        assert_eq!(named.see(&[thread(5000, &[(OUTER, 1001)], &[])]), None);
        assert!(named.see(&[thread(5101, &[(OUTER, 1001)], &[])]).is_some_and(|hang| !hang.has_moved));
    }

    #[test]
    fn a_recursion_is_as_long_as_its_outermost_run() {
        let mut named = trained();
        let mut flagged = None;
        for n in 0..8 {
            let inside = [(INNER, 1001), (INNER, 1002 + n)];
            flagged = flagged.or(named.see(&[thread(100 + 20 * n, &inside, &[])]));
        }
        assert!(matches!(flagged.unwrap().why, Stays::Lingers { section: INNER, .. }));
    }

    #[test]
    fn what_was_left_untold_says_nothing_of_how_long_a_section_takes() {
        let mut named = trained();
        assert_eq!(named.see(&[thread(100, &[(OUTER, 1001)], &[])]), None);
        assert!(named.see(&[thread(900, &[(OUTER, 1001)], &[])]).is_some());
        assert_eq!(named.see(&[thread(1000, &[], &[(OUTER, 1001, UNTOLD)])]), None);
        assert_eq!(named.see(&[thread(1100, &[(OUTER, 1002)], &[(OUTER, 1001, UNTOLD)])]), None);
        let hang = named.see(&[thread(1201, &[(OUTER, 1002)], &[])]).expect("it hangs");
        assert!(matches!(hang.why, Stays::Lingers { check: THRESHOLD, .. }));
    }

    #[test]
    fn bounded_memory_for_very_many_sections() {
        let mut named = Named::new(THRESHOLD);
        for n in 0..20_000 {
            named.see(&[thread(n, &[], &[(Section::Function(n), n + 1, n)])]);
        }
        assert!(named.seen[&1].left.len() == 1);
    }
}
