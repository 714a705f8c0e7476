//! The pin `sysc`: system calls of a program, and what stands before them.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "sysc";

/// Operation: a commit stands before calls of a kind. Argument: [`CommitBefore`]. While the module is told of its settings.
pub const COMMIT_BEFORE: &str = "commit_before";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "system calls of a program, and what stands before them",
    operations: &[named(COMMIT_BEFORE, "a commit stands before calls that others can see")],
    events: &[],
};

/// Which calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBefore {
    pub program: String,
    pub calls: Visible,
}

/// Calls that others can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visible {
    /// One commit may stand before several small outputs, which leave together.
    Together,
    /// Each has its own.
    Each,
}
