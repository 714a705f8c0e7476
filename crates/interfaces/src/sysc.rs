//! The pin `sysc`: system calls of a program, and what stands before them.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "sysc";

/// Operation: a commit stands before calls of a kind. Argument: [`CommitBefore`]. While the module is told of its settings.
pub const COMMIT_BEFORE: &str = "commit_before";

/// Operation: what a program sends on connections that others have made has no commit before it; requests are logged, and how much was sent.
/// Argument: [`LogReplies`]. While the module is told of its settings.
pub const LOG_REPLIES: &str = "log_replies";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "system calls of a program, and what stands before them",
    operations: &[
        named(COMMIT_BEFORE, "a commit stands before calls that others can see"),
        named(
            LOG_REPLIES,
            "requests to a server and the length of its replies are logged, with no commit before these",
        ),
    ],
    events: &[],
};

/// Which calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBefore {
    pub program: String,
    pub calls: Visible,
}

/// Of which program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReplies {
    pub program: String,
}

/// Calls that others can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visible {
    /// One commit may stand before several small outputs, which leave together.
    Together,
    /// Each has its own.
    Each,
}
