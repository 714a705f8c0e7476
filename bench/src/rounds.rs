//! Runs measurements round by round, and shows how far they are.

use crate::measurement::{Collected, Measurement};
use crate::promise::Report;
use crate::workshop::Workshop;
use indicatif::{ProgressBar, ProgressStyle};

/// Measurements of which at least one promise is wanted, run to their end.
pub fn run(measurements: Vec<Box<dyn Measurement>>, rounds: Option<usize>, workshop: &Workshop) -> Vec<Report> {
    let rounds = |m: &dyn Measurement| rounds.unwrap_or(m.rounds());
    let bar = ProgressBar::new(measurements.iter().map(|m| rounds(&**m) as u64).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (left: {eta})  {msg}") {
        bar.set_style(style);
    }
    let mut reports = Vec::new();
    for mut measurement in measurements {
        bar.set_message(measurement.name());
        let mut collected = Collected::default();
        let wanted = rounds(&*measurement);
        for number in 0..wanted {
            bar.tick();
            let tried = measurement.round(number, workshop, &mut collected);
            bar.inc(1);
            if let Err(failure) = tried {
                // Rounds that failed must be seen: the figures of the others are only half the truth.
                collected.obstacle(failure.to_string());
                bar.inc((wanted - number - 1) as u64);
                break;
            }
        }
        reports.extend(collected.reports(measurement.promises()));
    }
    bar.finish_and_clear();
    reports
}
