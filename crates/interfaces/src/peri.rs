//! The pin `peri`: what is done at intervals.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "peri";

/// Operation: a program is committed at intervals while it computes. Argument: [`Commit`]. For a program that has not begun.
pub const COMMIT: &str = "commit";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "what is done at intervals",
    operations: &[named(COMMIT, "a program is committed at intervals while it computes")],
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
