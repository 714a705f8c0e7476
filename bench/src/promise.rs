//! A number that outlast promises, and what became of it.

use crate::statistics::Summary;
use serde::Serialize;

/// What the number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "MiB")]
    Mebibytes,
}

impl Unit {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Percent => "%",
            Self::Mebibytes => "MiB",
        }
    }
}

/// How the figure comes from a pair of runs, native and protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The protected run's.
    Whole,
    /// Protected less native.
    Added,
    /// Protected less native, both in milliseconds, in percent of native.
    Overhead,
}

/// One promise.
#[derive(Clone, Debug, Serialize)]
pub struct Promise {
    /// Stable name, for `--filter` and SPECIFICATION.md.
    pub id: String,
    /// One line for a person.
    pub what: String,
    pub unit: Unit,
    pub relation: Relation,
    /// At most this.
    pub limit: f64,
}

impl Promise {
    pub fn new(id: &str, what: &str, unit: Unit, relation: Relation, limit: f64) -> Self {
        Self { id: id.into(), what: what.into(), unit, relation, limit }
    }
}

/// One run of each kind, made one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub native: Option<f64>,
    pub protected: f64,
}

impl Pair {
    /// The figure of the promise; `None` if it needs a native run and there was none.
    fn figure(&self, relation: Relation) -> Option<f64> {
        match relation {
            Relation::Whole => Some(self.protected),
            Relation::Added => Some(self.protected - self.native?),
            Relation::Overhead => Some((self.protected / self.native? - 1.0) * 100.0),
        }
    }
}

/// What became of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    Missed,
    /// This build or machine cannot show it; the report says why.
    NotMeasured,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
        }
    }
}

/// A promise with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub promise: Promise,
    pub verdict: Verdict,
    /// The promised figure, over all pairs.
    pub figure: Option<Summary>,
    pub native: Option<Summary>,
    pub protected: Option<Summary>,
    /// Under what circumstances it was measured; why it was not.
    pub notes: Vec<String>,
}

impl Report {
    /// `obstacle`: why what was measured, if anything, is not what was promised.
    pub fn new(promise: Promise, pairs: &[Pair], obstacle: Option<String>, mut notes: Vec<String>) -> Self {
        let all = |f: &dyn Fn(&Pair) -> Option<f64>| Summary::of(&pairs.iter().filter_map(f).collect::<Vec<_>>());
        let figure = all(&|pair| pair.figure(promise.relation));
        let verdict = match (&figure, &obstacle) {
            (_, Some(_)) | (None, _) => Verdict::NotMeasured,
            (Some(figure), _) if figure.median <= promise.limit => Verdict::Met,
            _ => Verdict::Missed,
        };
        if let Some(obstacle) = obstacle {
            notes.insert(0, obstacle);
        }
        let (native, protected) = (all(&|pair| pair.native), all(&|pair| Some(pair.protected)));
        Self { promise, verdict, figure, native, protected, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(relation: Relation, limit: f64) -> Promise {
        Promise { id: "p".into(), what: "a promise".into(), unit: Unit::Percent, relation, limit }
    }

    const PAIRS: [Pair; 2] =
        [Pair { native: Some(100.0), protected: 101.0 }, Pair { native: Some(200.0), protected: 206.0 }];

    #[test]
    fn an_overhead_is_taken_pair_by_pair() {
        let report = Report::new(promise(Relation::Overhead, 2.0), &PAIRS, None, Vec::new());
        assert!((report.figure.unwrap().median - 2.0).abs() < 1e-9);
        let report = Report::new(promise(Relation::Added, 3.0), &PAIRS, None, Vec::new());
        assert_eq!((report.figure.unwrap().median, report.verdict), (3.5, Verdict::Missed));
    }

    #[test]
    fn what_was_measured_under_other_circumstances_is_no_proof() {
        let report = Report::new(promise(Relation::Whole, 1e9), &PAIRS, Some("no BPF".into()), Vec::new());
        assert_eq!(report.verdict, Verdict::NotMeasured);
        assert_eq!(report.notes, ["no BPF"]);
    }
}
