//! Figure 2: what a commit costs after so many bytes were touched.

use super::results::{Pattern, Point, Sweep};
use crate::evaluation::progress::Progress;
use crate::failure::Outcome;
use crate::trial::{Trial, EACH};
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::time::Duration;

const PAGE: u64 = 4096;
/// From a page to 16 MiB.
const LARGEST: u64 = 4096;
/// Pages that are touched in one run, over all of its turns; at least [`LEAST_TURNS`] turns are made.
const PAGES_A_RUN: u64 = 40_000;
const LEAST_TURNS: u64 = 12;
const MOST_TURNS: u64 = 10_000;
/// Batches of which the median is taken.
const MOST_BATCHES: u64 = 50;
/// What a pair of runs takes, roughly.
const PAIR: Duration = Duration::from_millis(700);

/// Numbers of pages that are measured.
pub fn sizes(quick: bool) -> Vec<u64> {
    let all = (0..=LARGEST.ilog2()).map(|power| 1 << power);
    all.filter(|pages: &u64| !quick || pages.ilog2() % 4 == 0).collect()
}

/// Tenths of a second that one pattern takes.
pub fn tenths(rounds: usize, quick: bool) -> u64 {
    (sizes(quick).len() * rounds) as u64 * PAIR.as_millis() as u64 / 100
}

/// All sizes of one pattern.
pub fn measure(pattern: Pattern, rounds: usize, quick: bool, workshop: &Workshop, progress: &Progress) -> Sweep {
    let points = sizes(quick).into_iter().map(|pages| Point { bytes: pages * PAGE, pairs: Vec::new() });
    let mut sweep = Sweep { pattern, points: points.collect(), obstacle: None, conditions: String::new() };
    // Size after size in each round, so that whoever disturbs does not do so at one size alone.
    for number in 0..rounds {
        progress.say(format!("commits after {}, round {} of {rounds}", pattern.describe(), number + 1));
        for point in &mut sweep.points {
            match pair(pattern, point.bytes / PAGE, number, workshop) {
                Ok((pair, conditions)) => {
                    point.pairs.push(pair);
                    // The first size makes the most turns: what is settled by then holds for all.
                    if sweep.conditions.is_empty() {
                        sweep.conditions = conditions;
                    }
                }
                Err(failure) => {
                    sweep.obstacle.get_or_insert(failure.to_string());
                }
            }
            progress.passed(PAIR);
        }
    }
    sweep
}

/// Nanoseconds of a turn, native and protected, and the circumstances of the latter.
pub fn pair(pattern: Pattern, pages: u64, number: usize, workshop: &Workshop) -> Outcome<([f64; 2], String)> {
    let turns = (PAGES_A_RUN / pages).clamp(LEAST_TURNS, MOST_TURNS);
    let batches = turns.min(MOST_BATCHES);
    // Cold pages come again only after sixteen turns at least.
    let (word, megabytes) = match pattern {
        Pattern::Whole => ("whole", 16),
        Pattern::Word => ("hot", 16),
        Pattern::Cold => ("cold", 256),
    };
    let numbers = [megabytes, batches, turns / batches, pages].map(|n| OsString::from(n.to_string()));
    let [megabytes, batches, iterations, pages] = numbers;
    let trial = Trial {
        user: User::Own,
        before: vec![workshop.executable("commit").into()],
        after: vec![megabytes, word.into(), batches, iterations, pages],
        figures: 1,
    };
    let (native, protected, conditions) = trial.pair(number, workshop, EACH)?;
    Ok(([native[0], protected[0]], conditions.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_reach_from_a_page_to_sixteen_megabytes() {
        for quick in [false, true] {
            let sizes = sizes(quick);
            assert_eq!((sizes[0] * PAGE, sizes[sizes.len() - 1] * PAGE), (4096, 16 << 20));
        }
    }
}
