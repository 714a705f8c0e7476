//! The pin `peri`: what is done at intervals.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "peri";

/// Operation: a program is committed at intervals while it computes. Argument: [`Commit`]. While the module is told of its settings.
pub const COMMIT: &str = "commit";

/// Operation: states of a program are kept at intervals, to go back to. Argument: [`Keep`]. While the module is told of its settings.
pub const KEEP: &str = "keep";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "what is done at intervals",
    operations: &[
        named(COMMIT, "a program is committed at intervals while it computes"),
        named(KEEP, "states of a program are kept at intervals"),
    ],
    events: &[],
};

/// How often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    pub program: String,
    pub every: Duration,
    /// The interval may grow, so that commits take no more than a hundredth of the time.
    pub sparing: bool,
}

/// How often, for how long and in how much room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    pub program: String,
    pub every: Duration,
    pub keep: Duration,
    /// Bytes.
    pub budget: u64,
}
