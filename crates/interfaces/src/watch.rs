//! What several pins are asked for in the same way: to look at a program at intervals.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which program, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    pub program: String,
    /// The module that wants it.
    pub by: String,
    /// Of several modules the one that wants it more often counts. Each interval is up to a quarter longer or shorter, so that what
    /// a program does in a rhythm is not always met at the same point of it.
    pub every: Duration,
}

/// When a look was made, and at what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Since some moment before, on a clock that does not go back.
    pub at: Duration,
    /// The process that the program was then: another one after a respawn, of which what was seen before says nothing.
    pub process: i32,
    /// Which of those: a process that goes on from a commit may have the same number as the one before it.
    pub life: u64,
}
