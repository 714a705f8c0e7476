//! What the evaluation measured: plain data, one figure a run, written as JSON and read back to make the page anew.

use crate::evaluation::report::Origin;
use crate::evaluation::section::Section;
use serde::{Deserialize, Serialize};

/// Everything that one run of the command found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    #[serde(flatten)]
    pub origin: Origin,
    /// Of the full numbers of experiments.
    pub scale: f64,
    pub injected: Section<Injected>,
    pub unharmed: Section<Unharmed>,
    pub applications: Section<Application>,
    pub approaches: Section<Approach>,
    pub loads: Section<Load>,
}

/// Table 7, campaigns 1 and 2: faults in the server's main loop, in one setting.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Injected {
    pub campaign: String,
    pub setting: String,
    pub seed: u64,
    /// All that were to be injected.
    pub count: usize,
    /// Came to their point.
    pub struck: usize,
    /// Known to have had no effect.
    pub idle: usize,
    pub correct: usize,
    pub error: usize,
    pub crash: usize,
    pub hang: usize,
    pub went_back: usize,
    pub silent: usize,
    /// Struck ones that the log tells of.
    pub detected: usize,
    /// Struck ones after which the program was recovered at least once.
    pub recovered: usize,
    pub gave_up: usize,
    /// Milliseconds from the fault to the first line of the log about it.
    pub latencies_ms: Vec<f64>,
    pub obstacle: Option<String>,
}

/// Table 7, campaign 3: sessions of small pages and a huge file, without any fault, on one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Unharmed {
    pub seed: u64,
    pub sessions: usize,
    /// Requests of a session, the huge file not counted.
    pub small: usize,
    /// What the log calls a hang.
    pub false_alarms: usize,
    /// Sessions whose replies were others than those of a native server.
    pub different: usize,
    pub seconds: f64,
    pub obstacle: Option<String>,
}

/// Pages by what they hold: data, bss, heap, stack, data of libraries, other.
pub type Pages = [u32; 6];

/// Table 8: a program under checkpoints at intervals.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Application {
    pub name: String,
    pub what: String,
    pub interval_ms: u64,
    pub rounds: Vec<Round>,
    pub obstacle: Option<String>,
    pub conditions: String,
}

/// The same work in every way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    pub native: Work,
    /// `checkpoint` every interval, and what it committed.
    pub protected: Work,
    pub commits: u64,
    pub log_bytes: u64,
    pub shadow: Work,
    pub dump: Work,
    /// One a checkpoint: milliseconds.
    pub shadow_ms: Vec<f64>,
    pub dump_ms: Vec<f64>,
    /// One an interval: milliseconds that arming all pages took, pages there, pages written.
    pub armed_ms: Vec<f64>,
    pub present: Vec<Pages>,
    pub written: Vec<Pages>,
    /// Microseconds for each page written: its fault, its copy and being armed again.
    pub a_page_us: f64,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub elapsed_ms: f64,
    pub processor_ms: f64,
    /// Requests of a server; 1 for a program that runs to its end.
    pub units: f64,
}

/// Table 9: what a server's death costs those that it serves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Approach {
    pub name: String,
    pub what: String,
    pub seed: u64,
    /// Milliseconds from each kill to the next correct reply.
    pub recoveries_ms: Vec<f64>,
    /// Of the kills, those after which a client found its connection broken, and those after which it got something else than it
    /// had asked for.
    pub broken: usize,
    pub wrong: usize,
    /// How connections broke: when, and what the client was told.
    #[serde(default)]
    pub breaks: Vec<String>,
    /// Microseconds of processor time a request, without kills, native and with this approach.
    pub pairs_us: Vec<[f64; 2]>,
    pub obstacle: Option<String>,
}

/// Figure 9: a server with one kind of module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    pub modules: String,
    pub points: Vec<Point>,
    pub obstacle: Option<String>,
    pub conditions: String,
}

/// One number of clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    pub clients: u32,
    pub runs: Vec<Served>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    pub requests: f64,
    pub seconds: f64,
    pub bytes: f64,
    pub mean_us: f64,
    pub median_us: f64,
    pub p99_us: f64,
    /// Broken connections, wrong statuses, time-outs.
    pub errors: f64,
    /// Processor time of the server and those who watch over it, a request.
    pub processor_us: f64,
}
