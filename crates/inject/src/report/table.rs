//! A row for each class of faults in each setting.

use super::wilson;
use crate::campaign::Kind;
use crate::judge::{self, Outcome};
use crate::record::{Experiment, Head};
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of the faults of one class in one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub setting: String,
    /// None: all classes.
    pub kind: Option<Kind>,
    pub injected: usize,
    /// In the order of [`judge::ALL`].
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Of those that were activated, the share of correct ones, and its 95 % interval.
    pub correct: Option<f64>,
    pub interval: Option<[f64; 2]>,
    /// What outlast did; zero for runs by themselves.
    pub detected: usize,
    pub recovered: usize,
    pub went_back: usize,
    pub gave_up: usize,
    pub suspended: usize,
    /// Microseconds from fault to detection, and of a recovery: median, 90th and 99th percentile.
    pub detection_us: Option<[f64; 3]>,
    pub recovery_us: Option<[f64; 3]>,
}

impl Row {
    pub fn of(&self, outcome: Outcome) -> usize {
        self.outcomes.get(outcome.name()).copied().unwrap_or(0)
    }

    /// Faults that struck and may have had an effect.
    pub fn activated(&self) -> usize {
        self.injected - self.of(Outcome::NotActivated) - self.of(Outcome::Impossible)
    }

    pub fn class(&self) -> &'static str {
        self.kind.map_or("all", Kind::name)
    }
}

/// All rows, settings in the campaign's order, classes by name, all of them last.
pub fn rows(head: &Head, experiments: &[Experiment]) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &head.settings {
        let here: Vec<&Experiment> = experiments.iter().filter(|e| e.setting == *setting).collect();
        let mut kinds: Vec<Kind> = here.iter().map(|e| e.kind).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            rows.push(row(setting, Some(kind), here.iter().copied().filter(|e| e.kind == kind)));
        }
        rows.push(row(setting, None, here.iter().copied()));
    }
    rows
}

fn row<'a>(setting: &str, kind: Option<Kind>, experiments: impl Iterator<Item = &'a Experiment>) -> Row {
    let all: Vec<&Experiment> = experiments.collect();
    let count = |is: &dyn Fn(&Experiment) -> bool| all.iter().filter(|e| is(e)).count();
    let outlast = |is: &dyn Fn(&crate::reaction::Reaction) -> bool| count(&|e| e.outlast.as_ref().is_some_and(is));
    let times = |of: &dyn Fn(&crate::reaction::Reaction) -> Option<f64>| {
        percentiles(all.iter().filter_map(|e| e.outlast.as_ref().and_then(of)).collect())
    };
    let mut row = Row {
        setting: setting.into(),
        kind,
        injected: all.len(),
        outcomes: judge::ALL.iter().map(|o| (o.name(), count(&|e| e.outcome == *o))).collect(),
        correct: None,
        interval: None,
        detected: outlast(&|r| r.detected_us.is_some()),
        recovered: count(&|e| e.outcome == Outcome::Correct && e.outlast.as_ref().is_some_and(|r| r.recoveries > 0)),
        went_back: outlast(&|r| r.went_back > 0),
        gave_up: outlast(&|r| r.gave_up),
        suspended: outlast(&|r| r.suspended.is_some()),
        detection_us: times(&|r| r.detected_us),
        recovery_us: times(&|r| r.recovery_us),
    };
    let (correct, activated) = (row.of(Outcome::Correct), row.activated());
    row.interval = wilson::interval(correct, activated);
    row.correct = (activated > 0).then(|| correct as f64 / activated as f64);
    row
}

/// Median, 90th and 99th percentile: the smallest values that so many do not exceed.
fn percentiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| values[((values.len() as f64 * share).ceil() as usize).saturating_sub(1).min(last)];
    Some([at(0.5), at(0.9), at(0.99)])
}

const HEAD: [&str; 16] = [
    "SETTING",
    "FAULT",
    "INJECTED",
    "NOT ACTIVATED",
    "CORRECT",
    "ERROR",
    "CRASH",
    "HANG",
    "WENT BACK",
    "SILENT",
    "IMPOSSIBLE",
    "CORRECT OF ACTIVATED",
    "DETECTED",
    "RECOVERED",
    "GAVE UP",
    "RECOVERY µs (50/90/99 %)",
];

/// Head and rows in words.
pub fn lines(rows: &[Row]) -> Vec<[String; 16]> {
    std::iter::once(HEAD.map(String::from)).chain(rows.iter().map(cells)).collect()
}

fn cells(row: &Row) -> [String; 16] {
    let outcome = |o: Outcome| row.of(o).to_string();
    let [not, correct, error, crash, hang, back, silent, impossible] = judge::ALL.map(outcome);
    let share = match (row.correct, row.interval) {
        (Some(share), Some([low, high])) => {
            format!("{:.1} % ({:.1}–{:.1})", share * 100.0, low * 100.0, high * 100.0)
        }
        _ => "-".into(),
    };
    let times = row.recovery_us.map_or("-".into(), |[a, b, c]| format!("{a:.0}/{b:.0}/{c:.0}"));
    [
        row.setting.clone(),
        row.class().into(),
        row.injected.to_string(),
        not,
        correct,
        error,
        crash,
        hang,
        back,
        silent,
        impossible,
        share,
        row.detected.to_string(),
        row.recovered.to_string(),
        row.gave_up.to_string(),
        times,
    ]
}

/// The table for a person.
pub fn text(head: &Head, rows: &[Row]) -> String {
    let lines = lines(rows);
    let widths: [usize; 16] =
        std::array::from_fn(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0));
    let line = |cells: &[String; 16]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    let mut text = format!("{}, seed {}, {} faults in each setting\n\n", head.name, head.seed, head.count);
    text.extend(lines.iter().map(line));
    if !head.varying.is_empty() {
        text += &format!("\nnot compared, since unharmed runs differ there: {}\n", head.varying.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(percentiles(vec![]), None);
        assert_eq!(percentiles(vec![5.0]), Some([5.0; 3]));
        assert_eq!(percentiles((1..=100).map(f64::from).rev().collect()), Some([50.0, 90.0, 99.0]));
    }
}
