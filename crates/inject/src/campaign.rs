//! A campaign file, as data. `reading.rs` says what is wrong with one.

use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    pub name: String,
    #[serde(default = "one")]
    pub seed: u64,
    /// Faults; each strikes once in every setting.
    pub count: u32,
    /// After which a run is taken to hang.
    #[serde(default = "twenty_seconds", deserialize_with = "duration")]
    pub timeout: Duration,
    /// Experiments at the same time.
    #[serde(default = "one_job")]
    pub jobs: usize,
    /// Unharmed runs, to know what varies by itself.
    #[serde(default = "three")]
    pub references: u32,
    pub target: Target,
    #[serde(default, rename = "setting")]
    pub settings: Vec<Setting>,
    #[serde(default, rename = "fault")]
    pub faults: Vec<toml::Spanned<Fault>>,
}

/// What is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub command: Vec<String>,
    /// In place of the process that is started: of its descendants the one whose command line, words and spaces, ends so.
    pub process: Option<String>,
    /// A file in the working folder; without one standard input is empty.
    pub stdin: Option<String>,
    /// A folder, relative to the campaign file, of which every run gets a copy to work in.
    pub folder: Option<String>,
    /// Run once in that copy before the first run.
    pub prepare: Option<Vec<String>>,
    /// A client, run in the working folder beside the target; what it prints and its status are seen, too.
    pub drive: Option<Vec<String>>,
    /// Run in the working folder after the target's end in place of a comparison; status 0: the run was correct.
    pub check: Option<Vec<String>>,
    #[serde(default)]
    pub env: std::collections::BTreeMap<String, String>,
}

/// In which surroundings the target is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub name: String,
    /// Whether it runs under `outlast run`.
    #[serde(default)]
    pub protected: bool,
    /// Options of `outlast run`.
    #[serde(default)]
    pub options: Vec<String>,
}

/// A class of faults.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bits of registers flip.
    Register,
    /// Bits of memory flip.
    Memory,
    /// A conditional jump goes the other way.
    Branch,
    /// The instruction to come becomes a jump to itself.
    Loop,
    /// A function returns at once, with 0 and without having done anything: a lock is never released.
    Skip,
    /// A thread ends.
    Thread,
    /// A signal comes.
    Signal,
    /// The control group's memory limit falls for a moment.
    Limit,
    /// A system call is not made and fails.
    FailedCall,
    /// A system call gets a shorter buffer.
    ShortCall,
    /// A system call comes late.
    SlowCall,
    /// A descriptor is closed.
    Descriptor,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Register => "register",
            Kind::Memory => "memory",
            Kind::Branch => "branch",
            Kind::Loop => "loop",
            Kind::Skip => "skip",
            Kind::Thread => "thread",
            Kind::Signal => "signal",
            Kind::Limit => "limit",
            Kind::FailedCall => "failed-call",
            Kind::ShortCall => "short-call",
            Kind::SlowCall => "slow-call",
            Kind::Descriptor => "descriptor",
        }
    }

    pub fn is_of_calls(self) -> bool {
        matches!(self, Kind::FailedCall | Kind::ShortCall | Kind::SlowCall)
    }
}

/// By which clock a moment is drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Processor time of the target's process.
    #[default]
    TaskClock,
    Elapsed,
}

/// Where in memory.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    Text,
    Data,
    Heap,
    Stack,
}

/// One number, or the first and last of a range.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Numbers {
    One(u64),
    Range([u64; 2]),
}

impl Numbers {
    pub fn bounds(self) -> [u64; 2] {
        match self {
            Numbers::One(n) => [n, n],
            Numbers::Range(range) => range,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: Kind,
    #[serde(default = "one_weight")]
    pub weight: u32,
    /// The moment, in shares of an unharmed run.
    #[serde(default)]
    pub clock: Clock,
    #[serde(default)]
    pub from: f64,
    #[serde(default = "whole")]
    pub to: f64,
    /// In place of a moment: a function that is entered.
    pub symbol: Option<String>,
    /// For faults of calls: the name of a system call.
    pub call: Option<String>,
    /// Which entry or call, counted from 1.
    pub nth: Option<Numbers>,
    /// Registers to choose from; all general ones if empty.
    #[serde(default)]
    pub registers: Vec<String>,
    /// One bit flips in each of these registers, in place of some in any of them.
    #[serde(default)]
    pub each: bool,
    /// How many bits flip.
    #[serde(default = "one_weight")]
    pub bits: u32,
    pub area: Option<Area>,
    /// In place of an area: a variable.
    pub object: Option<String>,
    /// Which bit of the variable; one of the first 64 if none is named.
    pub bit: Option<u32>,
    pub signal: Option<String>,
    /// What a failed call reports: EIO …
    pub error: Option<String>,
    /// How late a slow call is, or how long a limit stays down.
    #[serde(default, deserialize_with = "some_duration")]
    pub delay: Option<Duration>,
}

fn one() -> u64 {
    1
}
fn one_job() -> usize {
    1
}
fn three() -> u32 {
    3
}
fn one_weight() -> u32 {
    1
}
fn whole() -> f64 {
    1.0
}
fn twenty_seconds() -> Duration {
    Duration::from_secs(20)
}

fn duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text).map_err(serde::de::Error::custom)
}

fn some_duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}
