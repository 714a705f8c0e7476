//! Code sections, and what is known of each: how much a thread computes in it, for each of its exits (RMK, §5.1). Where instructions are counted
//! they are what is compared: a thread executes as many on a slow processor, or with cold caches.

use outlast_interfaces::pmc::Spent;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// As many counts are kept of each exit (§7.2: trained with 50 requests).
pub const HISTORY: usize = 50;
/// So often a section must have been left before anything is concluded from that.
pub const TRAINED: u64 = 50;
/// How many times the largest count of a history is still no hang.
const MARGIN: u32 = 3;
/// More sections, and more exits of one, are not remembered: the program decides how many there are.
const MOST_SECTIONS: usize = 512;
const MOST_EXITS: usize = 16;

/// All sections of a program, by what tells them apart.
pub struct Sections<K> {
    known: BTreeMap<K, Section>,
}

impl<K> Default for Sections<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new() }
    }
}

#[derive(Default)]
struct Section {
    /// How often it was left.
    left: u64,
    exits: BTreeMap<u64, VecDeque<Spent>>,
}

impl<K: Ord> Sections<K> {
    /// A thread has left a section by this exit, so often; it had spent that in it, and no more the other times.
    pub fn left(&mut self, section: K, exit: u64, times: u64, spent: Spent) {
        if self.known.len() >= MOST_SECTIONS && !self.known.contains_key(&section) {
            return;
        }
        let section = self.known.entry(section).or_default();
        section.left += times;
        if section.exits.len() >= MOST_EXITS && !section.exits.contains_key(&exit) {
            return;
        }
        let history = section.exits.entry(exit).or_default();
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(spent);
    }

    /// After what time a thread that has spent so much in this section hangs; none: too little is known of it. Of the exit with the largest average the
    /// largest count is taken, several times, but never less than `threshold`. Of instructions it is how long they take here.
    pub fn check_value(&self, section: K, spent: Spent, threshold: Duration) -> Option<Duration> {
        let section = self.known.get(&section).filter(|section| section.left >= TRAINED)?;
        let average = |history: &&VecDeque<Spent>| {
            history.iter().map(|spent| spent.amount()).sum::<u128>() / history.len().max(1) as u128
        };
        let slowest = section.exits.values().max_by_key(average)?;
        let most = slowest.iter().max_by_key(|spent| spent.amount())?;
        let check = match most.instructions.zip(spent.instructions) {
            Some((most, executed)) => {
                let seconds = spent.time.as_secs_f64() * most as f64 / executed.max(1) as f64;
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
            None => most.time,
        };
        Some(check.saturating_mul(MARGIN).max(threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Spent {
        Spent::time(Duration::from_millis(ms))
    }

    fn check_value(sections: &Sections<u64>, section: u64) -> Option<Duration> {
        sections.check_value(section, ms(100_000), THRESHOLD)
    }

    #[test]
    fn nothing_is_concluded_from_little() {
        let mut sections = Sections::default();
        for n in 1..TRAINED {
            sections.left(1, 2, 1, ms(n));
        }
        assert_eq!(check_value(&sections, 1), None);
        sections.left(1, 2, 1, ms(1));
        assert!(check_value(&sections, 1).is_some());
        assert_eq!(check_value(&sections, 2), None);
    }

    #[test]
    fn the_exit_with_the_largest_average_counts() {
        let mut sections = Sections::default();
        for _ in 0..HISTORY {
            sections.left(1, 2, 1, ms(1));
            sections.left(1, 3, 1, ms(500));
        }
        // One that happened once, by an exit that is quick otherwise.
        sections.left(1, 2, 1, ms(900));
        assert_eq!(check_value(&sections, 1), Some(ms(1500).time));
    }

    #[test]
    fn trivial_cases_make_no_small_check_value() {
        let mut sections = Sections::default();
        (0..TRAINED).for_each(|_| sections.left(1, 2, 1, Spent::default()));
        assert_eq!(check_value(&sections, 1), Some(THRESHOLD));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut sections = Sections::default();
        sections.left(1, 2, 1, ms(10_000));
        (0..HISTORY).for_each(|_| sections.left(1, 2, 1, ms(100)));
        assert_eq!(check_value(&sections, 1), Some(ms(300).time));
    }

    #[test]
    fn a_program_of_very_many_sections_takes_bounded_memory() {
        let mut sections = Sections::default();
        for n in 0..100_000 {
            sections.left(n, n, 1, ms(1));
            sections.left(0, n, 1, ms(1));
        }
        assert!(sections.known.len() == MOST_SECTIONS && sections.known[&0].exits.len() == MOST_EXITS);
    }

    #[test]
    fn where_instructions_are_counted_they_are_compared_and_not_time() {
        let spent = |ms, instructions| Spent { time: Duration::from_millis(ms), instructions: Some(instructions) };
        let mut sections = Sections::default();
        // A thousand instructions take a millisecond; once they took long.
        (0..TRAINED).for_each(|n| sections.left(1, 2, 1, spent(if n == 7 { 9000 } else { 1000 }, 1_000_000)));
        let check = |spent| sections.check_value(1, spent, THRESHOLD).map(|check| spent.time > check);
        assert_eq!(check(spent(3001, 3_001_000)), Some(true));
        assert_eq!(check(spent(20_000, 2_900_000)), Some(false));
        assert_eq!(check(spent(200, 3_100_000)), Some(true));
        assert_eq!(check(spent(99, 9_000_000)), Some(false));
        assert_eq!(check(spent(1000, 0)), Some(false));
    }
}
