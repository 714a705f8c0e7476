//! Looks at all programs, and what changed between two of them.

use super::tail::Tail;
use outlast_supervisor::durations::Percentiles;
use outlast_supervisor::log::Entry;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::status::{all, Status};
use outlast_supervisor::{clock, Error};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

/// A program between two looks.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub status: Status,
    /// None at the first look, and when the program has become another one.
    pub commits_per_s: Option<f64>,
    pub calls_per_s: Option<f64>,
    /// What commits took between the looks, in microseconds; none if there were none.
    pub recent_commit_us: Option<Percentiles>,
    pub hangs: u64,
    pub storms: u64,
    pub last_event: Option<Last>,
}

/// The last line of the log.
#[derive(Clone, Debug, Serialize)]
pub struct Last {
    pub what: String,
    pub age_s: f64,
}

impl Row {
    /// What the state column says.
    pub fn state(&self) -> &str {
        self.status.ended.as_deref().unwrap_or(&self.status.state)
    }

    pub fn has_ended(&self) -> bool {
        self.status.ended.is_some() || self.status.state == "exited"
    }
}

/// Looks at the programs of a state folder.
pub struct Sampler {
    pub state: StateFolder,
    /// Also at those that have ended.
    all: bool,
    ns_per_tick: f64,
    before: BTreeMap<String, (Instant, Status)>,
    tails: BTreeMap<String, Tail>,
}

impl Sampler {
    /// Takes the first look, which the next one is compared with.
    pub fn new(state: StateFolder, all: bool) -> Result<Self, Error> {
        let ns_per_tick = clock::ns_per_tick();
        let mut sampler = Self { state, all, ns_per_tick, before: BTreeMap::new(), tails: BTreeMap::new() };
        sampler.look()?;
        Ok(sampler)
    }

    /// What there is now.
    pub fn look(&mut self) -> Result<Vec<Row>, Error> {
        let programs = all(&self.state)?;
        self.tails.retain(|name, _| programs.iter().any(|program| program.name == *name));
        let mut rows = Vec::new();
        let mut seen = BTreeMap::new();
        for status in programs {
            let now = Instant::now();
            let row = self.row(&status, now);
            seen.insert(status.name.clone(), (now, status));
            if self.all || !row.has_ended() {
                rows.push(row);
            }
        }
        self.before = seen;
        Ok(rows)
    }

    /// The last entries of a program's log.
    pub fn entries(&self, name: &str) -> impl DoubleEndedIterator<Item = &Entry> {
        self.tails.get(name).into_iter().flat_map(|tail| &tail.entries)
    }

    fn row(&mut self, status: &Status, now: Instant) -> Row {
        let tail = self.tails.entry(status.name.clone()).or_default();
        if let Ok(folder) = self.state.program(&status.name) {
            tail.follow(&folder);
        }
        let is_same = |before: &&(Instant, Status)| {
            before.1.started == status.started && before.1.generation == status.generation && status.pid.is_some()
        };
        let before = self.before.get(&status.name).filter(is_same);
        let rate = |of: fn(&Status) -> u64| {
            let (then, before) = before?;
            let seconds = now.duration_since(*then).as_secs_f64();
            Some(of(status).checked_sub(of(before))? as f64 / seconds).filter(|_| seconds > 0.0)
        };
        let counted = before.map(|(_, before)| status.commit_durations.since(&before.commit_durations));
        Row {
            commits_per_s: rate(|status| status.commits),
            calls_per_s: rate(|status| status.calls),
            recent_commit_us: counted.and_then(|counted| counted.percentiles(self.ns_per_tick)),
            hangs: tail.hangs,
            storms: tail.storms,
            last_event: tail.entries.back().map(|entry| Last { what: name(entry), age_s: age(entry).as_secs_f64() }),
            status: status.clone(),
        }
    }
}

/// As `outlast log --json` has it.
fn name(entry: &Entry) -> String {
    let name = serde_json::to_value(entry.event).ok();
    name.and_then(|name| name.as_str().map(String::from)).unwrap_or_default()
}

/// Since it was written.
fn age(entry: &Entry) -> Duration {
    let then = humantime::parse_rfc3339(&entry.time).unwrap_or(SystemTime::UNIX_EPOCH);
    SystemTime::now().duration_since(then).unwrap_or_default()
}
