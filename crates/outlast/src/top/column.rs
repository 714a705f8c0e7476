//! The columns of the table: what each shows, by what it sorts, and which give way where there is no room.

use super::figures::{age, bytes, micros, number};
use super::sample::Row;
use clap::ValueEnum;
use outlast_supervisor::durations::Percentiles;
use outlast_supervisor::say::printable;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Column {
    Name,
    Pid,
    State,
    Commits,
    Calls,
    Median,
    P99,
    Store,
    Recoveries,
    Rollbacks,
    Hangs,
    Event,
}

/// Between two.
pub const GAP: u16 = 1;
/// Who gives way first; the others never do.
const GIVE_WAY: [Column; 5] = [Column::Calls, Column::Median, Column::Rollbacks, Column::Hangs, Column::Store];

impl Column {
    pub const ALL: [Self; 12] = [
        Self::Name,
        Self::Pid,
        Self::State,
        Self::Commits,
        Self::Calls,
        Self::Median,
        Self::P99,
        Self::Store,
        Self::Recoveries,
        Self::Rollbacks,
        Self::Hangs,
        Self::Event,
    ];

    /// Head, the least width, and the key that sorts by it.
    const fn traits(self) -> (&'static str, u16, char) {
        match self {
            Self::Name => ("NAME", 11, 'N'),
            Self::Pid => ("PID", 7, 'P'),
            Self::State => ("STATE", 9, 'T'),
            Self::Commits => ("COMM/S", 6, 'C'),
            Self::Calls => ("CALL/S", 6, 'L'),
            Self::Median => ("P50", 5, 'M'),
            Self::P99 => ("P99", 5, 'X'),
            Self::Store => ("STORE", 5, 'B'),
            Self::Recoveries => ("RECOV", 5, 'E'),
            Self::Rollbacks => ("ROLLB", 5, 'K'),
            Self::Hangs => ("HANGS", 5, 'H'),
            Self::Event => ("LAST EVENT", 15, 'V'),
        }
    }

    pub const fn head(self) -> &'static str {
        self.traits().0
    }

    pub const fn width(self) -> u16 {
        self.traits().1
    }

    pub const fn key(self) -> char {
        self.traits().2
    }

    pub fn what(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Pid => "process",
            Self::State => "state",
            Self::Commits => "commits a second",
            Self::Calls => "system calls a second",
            Self::Median => "half of commits took less",
            Self::P99 => "99 of 100 took less",
            Self::Store => "the store takes",
            Self::Recoveries => "recoveries",
            Self::Rollbacks => "crashes met in place",
            Self::Hangs => "hangs ended",
            Self::Event => "and how long ago",
        }
    }

    /// Figures stand on the right.
    pub fn is_figure(self) -> bool {
        !matches!(self, Self::Name | Self::State | Self::Event)
    }

    pub fn cell(self, row: &Row) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let took = |of: fn(Percentiles) -> f64| or_dash(percentiles(row).map(|percentiles| micros(of(percentiles))));
        let text = match self {
            Self::Name => row.status.name.clone(),
            Self::Pid => or_dash(row.status.pid.map(|pid| pid.to_string())),
            Self::State => row.state().into(),
            Self::Commits => or_dash(row.commits_per_s.map(number)),
            Self::Calls => or_dash(row.calls_per_s.map(number)),
            Self::Median => took(|percentiles| percentiles.median),
            Self::P99 => took(|percentiles| percentiles.p99),
            Self::Store => bytes(row.status.store_bytes),
            Self::Recoveries => number(row.status.recoveries as f64),
            Self::Rollbacks => number(row.status.rollbacks as f64),
            Self::Hangs => number(row.hangs as f64),
            Self::Event => or_dash(row.last_event.as_ref().map(|last| format!("{} {}", age(last.age_s), last.what))),
        };
        printable(&text)
    }

    /// Names as in a dictionary, figures the largest first, events the newest first.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
        let largest = |of: &dyn Fn(&Row) -> f64| of(b).total_cmp(&of(a));
        let by = match self {
            Self::Name => a.status.name.cmp(&b.status.name),
            Self::Pid => a.status.pid.cmp(&b.status.pid),
            Self::State => a.state().cmp(b.state()),
            Self::Commits => largest(&|row| row.commits_per_s.unwrap_or(-1.0)),
            Self::Calls => largest(&|row| row.calls_per_s.unwrap_or(-1.0)),
            Self::Median => largest(&|row| percentiles(row).map_or(-1.0, |percentiles| percentiles.median)),
            Self::P99 => largest(&|row| percentiles(row).map_or(-1.0, |percentiles| percentiles.p99)),
            Self::Store => b.status.store_bytes.cmp(&a.status.store_bytes),
            Self::Recoveries => b.status.recoveries.cmp(&a.status.recoveries),
            Self::Rollbacks => b.status.rollbacks.cmp(&a.status.rollbacks),
            Self::Hangs => b.hangs.cmp(&a.hangs),
            Self::Event => largest(&|row| row.last_event.as_ref().map_or(f64::MIN, |last| -last.age_s)),
        };
        by.then_with(|| a.status.name.cmp(&b.status.name))
    }

    /// Those that fit into a width.
    pub fn that_fit(width: u16) -> Vec<Self> {
        let mut shown = Self::ALL.to_vec();
        for column in GIVE_WAY {
            let wanted: u16 = shown.iter().map(|column| column.width() + GAP).sum();
            if wanted - GAP <= width {
                break;
            }
            shown.retain(|other| *other != column);
        }
        shown
    }
}

/// Of the time between the looks; where nothing was committed then, since the program was executed.
fn percentiles(row: &Row) -> Option<Percentiles> {
    row.recent_commit_us.or(row.status.commit_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_small_terminal_what_matters_most_is_left() {
        let shown = Column::that_fit(80);
        let width: u16 = shown.iter().map(|column| column.width() + GAP).sum();
        assert!(width <= 81 && shown.contains(&Column::Recoveries) && shown.contains(&Column::P99), "{shown:?}");
        assert_eq!(Column::that_fit(200), Column::ALL);
    }

    #[test]
    fn each_column_has_a_key_of_its_own() {
        let keys: std::collections::BTreeSet<_> = Column::ALL.iter().map(|column| column.key()).collect();
        assert_eq!(keys.len(), Column::ALL.len());
    }
}
