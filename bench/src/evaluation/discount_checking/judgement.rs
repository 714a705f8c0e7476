//! Where ours is worse than the paper's, or than what SPECIFICATION.md promises, as far as the figures tell.

use super::figures::size;
use super::paper::{self, TABLE_2};
use super::results::Results;
use crate::measure;

/// So much more is still the same.
const SAME: f64 = 0.05;

/// Lines for a person: what is worse, and by how much. Nothing measured is nothing said.
pub fn worse(results: &Results) -> Vec<String> {
    [applications(results), commits(results), computations(results)].concat()
}

/// The limit of a promise; none if there is no such promise.
fn promised(id: &str) -> Option<f64> {
    let promises = measure::all().into_iter().flat_map(|measurement| measurement.promises());
    promises.into_iter().find(|promise| promise.id == id).map(|promise| promise.limit)
}

fn applications(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for (row, application) in TABLE_2.iter().filter_map(|row| {
        let same = |application: &&super::results::Application| application.name == row.ours;
        Some((row, results.applications.entries.iter().find(same)?.summary()?))
    }) {
        let mut say = |what: &str, ours: f64, limit: f64, unit: &str, whose: &str| {
            if ours > limit * (1.0 + SAME) {
                lines.push(format!("**{}**: {what} {ours:.2} {unit}, {whose} {limit:.2} {unit}.", row.ours));
            }
        };
        let theirs = format!("{} of the paper", row.name);
        say("overhead", application.overhead.median, row.overhead, "%", &theirs);
        say("log a commit", application.log_average / 1024.0, f64::from(row.average_kb), "KB", &theirs);
        say("largest log", application.log.largest as f64 / 1024.0, f64::from(row.largest_kb), "KB", &theirs);
        // All sessions of this kind are under one promise.
        if let Some(limit) = promised("interactive-nvi").filter(|_| application_is_typed(row.ours)) {
            let ours = application.processor.median;
            say("processor time added to the session", ours, limit, "%", "promised are at most");
        }
    }
    lines
}

/// The promise is about ten keys a second.
fn application_is_typed(name: &str) -> bool {
    name != "magic"
}

fn commits(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for sweep in &results.commits.entries {
        let slower = sweep.points.iter().filter_map(|point| {
            let (ours, theirs) = (point.added_us()?.median, paper::checkpoint_us(point.bytes));
            (ours > theirs).then(|| format!("{} ({ours:.0} µs against {theirs:.0})", size(point.bytes)))
        });
        let slower: Vec<String> = slower.collect();
        if !slower.is_empty() {
            lines.push(format!("**A commit after {}**: slower at {}.", sweep.pattern.describe(), slower.join(", ")));
        }
    }
    lines
}

fn computations(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for computation in &results.computations.entries {
        for at in computation.summaries() {
            let (name, ours) = (&computation.name, at.processor.median);
            let [_, theirs] = paper::EVERY_SECOND;
            if at.interval_ms == 1000 && at.elapsed.median > theirs {
                lines.push(format!(
                    "**{name}** every second: {:.1} %, the paper at most {theirs} %.",
                    at.elapsed.median
                ));
            }
            let id = match at.interval_ms {
                50 => "every-50ms-gzip",
                1000 => "every-1s-gzip",
                _ => continue,
            };
            if let Some(limit) = promised(id).filter(|limit| ours > *limit) {
                lines.push(format!(
                    "**{name}** every {} ms: {ours:.2} % of processor time; for gzip and python3 {limit} % are promised.",
                    at.interval_ms
                ));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn what_is_worse_is_named_and_what_is_not_is_not() {
        let lines = worse(&example::results());
        let [overhead, processor, every_50, nothing @ ..] = &lines[..] else { panic!("{lines:?}") };
        assert!(overhead.contains("nvi") && overhead.contains("overhead 0.20 %"), "{overhead}");
        assert!(processor.contains("processor time"), "{processor}");
        assert!(every_50.contains("cjpeg") && every_50.contains("8.00 %"), "{every_50}");
        assert!(nothing.is_empty(), "{nothing:?}");
    }

    #[test]
    fn a_slow_commit_is_named_with_its_size() {
        let mut results = example::results();
        results.commits.entries[0].points[1].pairs = vec![[0.0, 20e6]];
        let lines = worse(&results);
        assert!(lines.iter().any(|line| line.contains("slower at 1 MB (20000 µs against")), "{lines:?}");
    }

    #[test]
    fn the_promises_that_are_compared_with_exist() {
        for id in ["interactive-nvi", "every-50ms-gzip", "every-1s-gzip"] {
            assert!(promised(id).is_some(), "{id}");
        }
    }
}
