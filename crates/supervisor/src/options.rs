//! How a program is protected: what the person asked for, in the engine's terms.

use outlast_archive::Policy;
use outlast_image::inject::option;
use outlast_interfaces::{hang, leaks, plugin, storm};
use serde::{Deserialize, Serialize};

/// Passed to the engine at every injection, and kept in the program's description for a resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Bits of [`outlast_image::inject::option`].
    pub bits: u64,
    /// Bits of [`outlast_image::mutant::Mutant`].
    pub mutants: u128,
    /// Commit at least this often while the program runs; 0 for never. Nanoseconds.
    pub interval_ns: u64,
    /// Of a durable store: commits may reach the medium so much later; 0: they may not. Nanoseconds.
    #[serde(default)]
    pub lag_ns: u64,
    /// Attempts against the same fatal signal; none: a death is final.
    pub retries: Option<u32>,
    /// Bytes of the store's ring before it is folded.
    pub ring_len: u64,
    /// Which older generations are kept; none: none.
    #[serde(default)]
    pub generations: Option<Policy>,
    /// Whether hangs are looked for, and from what on one is one in any case; none: not at all.
    #[serde(default)]
    pub hang: Option<hang::Settings>,
    /// Functions that are code sections.
    #[serde(default)]
    pub sections: Vec<String>,
    /// From how many recoveries on it is a storm; none: never.
    #[serde(default)]
    pub storm: Option<storm::Settings>,
    /// Whether leaks are looked for; none: not at all.
    #[serde(default)]
    pub leaks: Option<leaks::Settings>,
    /// Modules that are loaded from files.
    #[serde(default)]
    pub plugins: Vec<plugin::Wish>,
    /// Pins that were uninstalled.
    #[serde(default)]
    pub without_pins: Vec<String>,
    /// The command that is run at a storm; no words: none.
    #[serde(default)]
    pub alert: Vec<String>,
    /// The socket of the journal that is told what is in the log; none: no journal.
    #[serde(default)]
    pub journal: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bits: 0,
            mutants: 0,
            interval_ns: 0,
            lag_ns: 0,
            retries: Some(3),
            ring_len: 2 << 20,
            generations: None,
            hang: None,
            sections: Vec::new(),
            storm: None,
            leaks: None,
            plugins: Vec::new(),
            without_pins: Vec::new(),
            alert: Vec::new(),
            journal: None,
        }
    }
}

impl Options {
    /// What of it the engine may be told otherwise while it runs.
    pub fn ways(&self) -> (u64, u64, u32) {
        (self.bits & option::WAYS, self.interval_ns, self.retries.unwrap_or(0))
    }

    /// Sets or clears one bit of [`outlast_image::inject::option`].
    pub fn set(&mut self, bit: u64, on: bool) {
        self.bits = if on { self.bits | bit } else { self.bits & !bit };
    }
}
