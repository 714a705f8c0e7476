//! Lines of the results' file.

use crate::campaign::Kind;
use crate::judge::Outcome;
use crate::oracle::Pace;
use crate::reaction::Reaction;
use crate::strike::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts up when a line of a former version can no longer be read.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "line")]
pub enum Line {
    Campaign(Head),
    Experiment(Experiment),
}

/// The first line: of which campaign the others are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub version: u32,
    pub name: String,
    /// SHA-256 of the campaign file.
    pub campaign: String,
    pub seed: u64,
    pub count: u32,
    pub settings: Vec<String>,
    /// How long an unharmed run takes in each setting: moments are shares of that, also when the campaign goes on later.
    pub pace: BTreeMap<String, Pace>,
    /// What unharmed runs do not agree about, and is not compared.
    pub varying: Vec<String>,
}

/// One fault in one setting, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    pub number: u32,
    pub setting: String,
    pub kind: Kind,
    /// When it was to strike.
    pub point: String,
    pub struck: bool,
    pub place: Option<Place>,
    pub what: Option<String>,
    pub activated: Option<bool>,
    pub outcome: Outcome,
    /// How the target ended.
    pub end: String,
    /// What is not as expected.
    pub objection: Option<String>,
    /// None for a run by itself.
    pub outlast: Option<Reaction>,
    /// From the fault to the end of the run.
    pub to_end_ms: Option<f64>,
    pub elapsed_ms: f64,
}
