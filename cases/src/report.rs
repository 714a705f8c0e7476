//! What a test did, as one line of text between its process and the runner's.

use std::fmt;

use crate::histogram::Histogram;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub runs: u32,
    /// Blows that hit a living process.
    pub landed: u32,
    /// Recoveries in the log.
    pub recovered: u32,
    /// Runs without io_uring whose view differed after a kill inside an operation: the documented window.
    pub window: u32,
    pub phases: Histogram,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { runs, landed, recovered, window, phases } = self;
        write!(f, "report runs={runs} landed={landed} recovered={recovered} window={window} | {phases}")
    }
}

impl Report {
    /// The inverse of `Display`; `None` if `line` is no report.
    pub fn parse(line: &str) -> Option<Report> {
        let (numbers, phases) = line.strip_prefix("report ")?.split_once('|')?;
        let number = |name: &str| {
            let word = numbers.split_whitespace().find_map(|w| w.strip_prefix(name)?.strip_prefix('='))?;
            word.parse().ok()
        };
        Some(Report {
            runs: number("runs")?,
            landed: number("landed")?,
            recovered: number("recovered")?,
            window: number("window")?,
            phases: Histogram::parse(phases),
        })
    }

    pub fn add(&mut self, other: &Report) {
        self.runs += other.runs;
        self.landed += other.landed;
        self.recovered += other.recovered;
        self.window += other.window;
        self.phases.add(&other.phases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back() {
        let mut report = Report { runs: 3, landed: 20, recovered: 19, window: 1, phases: Histogram::default() };
        report.phases.count(2);
        assert_eq!(Report::parse(&report.to_string()), Some(report));
    }
}
