//! What an evaluation measured: plain data, one figure a run, written as JSON and read back to make the page anew.

use crate::evaluation::report::Origin;
use crate::evaluation::section::Section;
use serde::{Deserialize, Serialize};

/// Everything that one run of the command found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    #[serde(flatten)]
    pub origin: Origin,
    pub applications: Section<Application>,
    pub commits: Section<Sweep>,
    pub computations: Section<Computation>,
}

/// Table 2: a program that waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Application {
    pub name: String,
    /// How long the person thinks before each key or command, in milliseconds.
    pub delay_ms: f64,
    /// What a person did, in words.
    pub session: String,
    pub rounds: Vec<Played>,
    /// Why there are no more rounds.
    pub obstacle: Option<String>,
    pub conditions: String,
}

/// The same session played to both sides, key by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    pub native: Typed,
    pub protected: Typed,
    /// Made between the first key and the last.
    pub commits: u64,
    pub log: Log,
    /// Calls that reached the engine by a signal.
    pub trapped: u64,
}

/// One side of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Typed {
    /// From each key or command to the program's asking for the next, in microseconds.
    pub responses_us: Vec<f64>,
    /// Processor time of the program, in microseconds.
    pub program_us: f64,
    /// Processor time of those who watch over it, in microseconds.
    pub watchers_us: f64,
}

/// What commits wrote to the store, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    pub bytes: u64,
    pub largest: u64,
}

/// Figure 2: commits after different numbers of bytes were touched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    pub pattern: Pattern,
    pub points: Vec<Point>,
    pub obstacle: Option<String>,
    pub conditions: String,
}

/// How the bytes are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every byte of the same pages each time.
    Whole,
    /// A word of each of the same pages each time.
    Word,
    /// A word of pages that were not touched for long.
    Cold,
}

impl Pattern {
    pub const ALL: [Self; 3] = [Self::Whole, Self::Word, Self::Cold];

    pub fn describe(self) -> &'static str {
        match self {
            Self::Whole => "every byte of the same pages",
            Self::Word => "a word of each of the same pages",
            Self::Cold => "a word of pages not touched for long",
        }
    }
}

/// One size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Whole pages of 4 KiB.
    pub bytes: u64,
    /// Nanoseconds of a turn: touch, commit, and write one byte; native and protected.
    pub pairs: Vec<[f64; 2]>,
}

/// Figure 3: a computation under commits at intervals.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Computation {
    pub name: String,
    pub what: String,
    pub rounds: Vec<Swept>,
    pub obstacle: Option<String>,
    pub conditions: String,
}

/// A pair of runs at each interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Swept {
    pub pairs: Vec<AtInterval>,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Took {
    pub elapsed_ms: f64,
    pub processor_ms: f64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AtInterval {
    pub interval_ms: u64,
    pub native: Took,
    pub protected: Took,
    /// Made after the first, which holds the program as it was executed.
    pub commits: u64,
    pub log: Log,
}
