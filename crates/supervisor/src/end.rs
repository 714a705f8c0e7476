//! How a process ended.

use crate::names;
use serde::{Deserialize, Serialize};

/// What waiting for a process told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It exited with this status, 0..=255.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl End {
    /// For people.
    pub fn words(self) -> String {
        match self {
            Self::Exited(status) => format!("exit {status}"),
            Self::Killed(signal) => names::signal(signal),
        }
    }

    /// From a wait status; `None` if the process only stopped or continued.
    pub fn of(status: i32) -> Option<Self> {
        if libc::WIFEXITED(status) {
            Some(Self::Exited(libc::WEXITSTATUS(status)))
        } else if libc::WIFSIGNALED(status) {
            Some(Self::Killed(libc::WTERMSIG(status)))
        } else {
            None
        }
    }
}
