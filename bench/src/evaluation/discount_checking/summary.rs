//! From single runs to the figures that the tables have.

use super::results::{Application, AtInterval, Computation, Log, Played, Point, Took, Typed};
use crate::statistics::Summary;

/// A row of Table 2. Everything is one figure a round, but for the responses, which are one a key.
pub struct ApplicationSummary {
    /// Seconds: what the person took to think, and what the program took to answer.
    pub native_s: Summary,
    pub protected_s: Summary,
    /// Percent more than native.
    pub overhead: Summary,
    /// Processor time of program and watchers more than native, in percent of the session.
    pub processor: Summary,
    /// Microseconds.
    pub native_response: Summary,
    pub protected_response: Summary,
    pub commits: Summary,
    pub log: Log,
    /// Bytes a commit in the mean.
    pub log_average: f64,
    pub a_key: AKey,
}

/// Where the time of a key goes: means over all keys, processor time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AKey {
    pub native_us: f64,
    pub program_us: f64,
    pub watchers_us: f64,
    pub commits: f64,
    pub trapped: f64,
}

impl Typed {
    /// Seconds of the session.
    fn seconds(&self, delay_ms: f64) -> f64 {
        (self.responses_us.len() as f64 * delay_ms * 1e3 + self.responses_us.iter().sum::<f64>()) / 1e6
    }
}

impl Application {
    /// None if no round came to its end.
    pub fn summary(&self) -> Option<ApplicationSummary> {
        let each = |f: &dyn Fn(&Played) -> f64| Summary::of(&self.rounds.iter().map(f).collect::<Vec<_>>());
        let seconds = |typed: &Typed| typed.seconds(self.delay_ms);
        let responses = |f: &dyn Fn(&Played) -> &Typed| {
            Summary::of(&self.rounds.iter().flat_map(|round| f(round).responses_us.clone()).collect::<Vec<_>>())
        };
        let added = |round: &Played| {
            let protected = round.protected.program_us + round.protected.watchers_us;
            (protected - round.native.program_us) / 1e6 / seconds(&round.native) * 100.0
        };
        let sum = |f: &dyn Fn(&Played) -> f64| self.rounds.iter().map(f).sum::<f64>();
        let keys = sum(&|round| round.protected.responses_us.len() as f64).max(1.0);
        let commits = sum(&|round| round.commits as f64);
        let log = Log {
            bytes: self.rounds.iter().map(|round| round.log.bytes).sum(),
            largest: self.rounds.iter().map(|round| round.log.largest).max()?,
        };
        Some(ApplicationSummary {
            native_s: each(&|round| seconds(&round.native))?,
            protected_s: each(&|round| seconds(&round.protected))?,
            overhead: each(&|round| (seconds(&round.protected) / seconds(&round.native) - 1.0) * 100.0)?,
            processor: each(&added)?,
            native_response: responses(&|round| &round.native)?,
            protected_response: responses(&|round| &round.protected)?,
            commits: each(&|round| round.commits as f64)?,
            log,
            log_average: log.bytes as f64 / commits.max(1.0),
            a_key: AKey {
                native_us: sum(&|round| round.native.program_us) / keys,
                program_us: sum(&|round| round.protected.program_us) / keys,
                watchers_us: sum(&|round| round.protected.watchers_us) / keys,
                commits: commits / keys,
                trapped: sum(&|round| round.trapped as f64) / keys,
            },
        })
    }
}

impl Point {
    /// Microseconds that a commit adds to a turn.
    pub fn added_us(&self) -> Option<Summary> {
        Summary::of(&self.pairs.iter().map(|[native, protected]| (protected - native) / 1e3).collect::<Vec<_>>())
    }
}

/// One interval of Figure 3.
pub struct IntervalSummary {
    pub interval_ms: u64,
    /// Percent more than native.
    pub elapsed: Summary,
    pub processor: Summary,
    pub commits: Summary,
    pub log_average: Summary,
    pub log_largest: Summary,
    /// Processor time that was added for each page of 4 KiB in the log, in microseconds; none if nothing was logged.
    pub a_page_us: Option<Summary>,
}

impl Computation {
    /// In the order of the intervals.
    pub fn summaries(&self) -> Vec<IntervalSummary> {
        let intervals = self.rounds.first().map(|round| round.pairs.iter().map(|at| at.interval_ms));
        intervals.into_iter().flatten().filter_map(|interval_ms| self.at(interval_ms)).collect()
    }

    fn at(&self, interval_ms: u64) -> Option<IntervalSummary> {
        let all = self.rounds.iter().flat_map(|round| &round.pairs);
        let pairs: Vec<AtInterval> = all.filter(|at| at.interval_ms == interval_ms).copied().collect();
        let each = |f: &dyn Fn(&AtInterval) -> f64| Summary::of(&pairs.iter().map(f).collect::<Vec<_>>());
        let pages = |at: &AtInterval| at.log.bytes as f64 / 4096.0;
        let a_page = |at: &AtInterval| (at.protected.processor_ms - at.native.processor_ms) * 1e3 / pages(at);
        let logged: Vec<f64> = pairs.iter().filter(|at| at.log.bytes > 0).map(a_page).collect();
        Some(IntervalSummary {
            interval_ms,
            elapsed: each(&|at| (at.protected.elapsed_ms / at.native.elapsed_ms - 1.0) * 100.0)?,
            processor: each(&|at| (at.protected.processor_ms / at.native.processor_ms - 1.0) * 100.0)?,
            commits: each(&|at| at.commits as f64)?,
            log_average: each(&|at| at.log.bytes as f64 / at.commits.max(1) as f64)?,
            log_largest: each(&|at| at.log.largest as f64)?,
            a_page_us: Summary::of(&logged),
        })
    }

    /// Milliseconds of the native runs, elapsed and of processor time.
    pub fn native(&self) -> Option<[Summary; 2]> {
        let all = self.rounds.iter().flat_map(|round| &round.pairs);
        let natives: Vec<Took> = all.map(|at| at.native).collect();
        let each = |f: &dyn Fn(&Took) -> f64| Summary::of(&natives.iter().map(f).collect::<Vec<_>>());
        Some([each(&|took| took.elapsed_ms)?, each(&|took| took.processor_ms)?])
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_session_is_as_long_as_its_thoughts_and_answers() {
        let summary = example::application().summary().unwrap();
        // Two keys a session, 100 ms each; answers of 100 and 300 µs, under protection 300 and 500.
        assert!((summary.native_s.median - 0.2004).abs() < 1e-9, "{}", summary.native_s.median);
        assert!((summary.overhead.median - 0.04 / 20.04 * 100.0).abs() < 1e-9, "{}", summary.overhead.median);
        assert!((summary.processor.median - 300.0 / 200_400.0 * 100.0).abs() < 1e-9, "{}", summary.processor.median);
        assert_eq!((summary.native_response.median, summary.protected_response.median), (200.0, 400.0));
        assert_eq!((summary.log_average, summary.log.largest), (4096.0, 8192));
        let a_key = AKey { native_us: 100.0, program_us: 200.0, watchers_us: 50.0, commits: 2.0, trapped: 0.5 };
        assert_eq!(summary.a_key, a_key);
    }

    #[test]
    fn a_commit_costs_what_the_pair_differs_by() {
        let point = Point { bytes: 4096, pairs: vec![[100.0, 1100.0], [200.0, 3200.0], [100.0, 2100.0]] };
        assert_eq!(point.added_us().unwrap().median, 2.0);
        assert!(Point { bytes: 4096, pairs: Vec::new() }.added_us().is_none());
    }

    #[test]
    fn an_interval_is_compared_with_the_native_run_beside_it() {
        let summaries = example::computation().summaries();
        assert_eq!(summaries.iter().map(|at| at.interval_ms).collect::<Vec<_>>(), [50, 1000]);
        assert!((summaries[0].elapsed.median - 10.0).abs() < 1e-9);
        assert!((summaries[0].processor.median - 8.0).abs() < 1e-9);
        assert_eq!((summaries[0].commits.median, summaries[0].log_average.median), (20.0, 4096.0));
        assert_eq!(summaries[0].a_page_us.unwrap().median, 4000.0);
        // It never committed: nothing was logged, and nothing is divided by that.
        assert!(summaries[1].a_page_us.is_none() && summaries[1].log_average.median == 0.0);
    }

    #[test]
    fn what_did_not_run_has_no_figures() {
        let mut application = example::application();
        application.rounds.clear();
        assert!(application.summary().is_none());
        let mut computation = example::computation();
        computation.rounds.clear();
        assert!(computation.summaries().is_empty() && computation.native().is_none());
    }
}
