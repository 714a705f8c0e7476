//! Who runs the measured programs.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// User and group id of the ordinary user when we are root: one that no package claims.
const ORDINARY_ID: u32 = 20_471;

/// Root and an ordinary user have different means: only root may use BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the benchmarks.
    Own,
    /// Somebody without any capability.
    Ordinary,
}

pub fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl User {
    pub fn word(self) -> &'static str {
        match self {
            Self::Own if we_are_root() => "root",
            Self::Own => "own",
            Self::Ordinary => "ordinary",
        }
    }

    /// The id to change to, if we are not that user already.
    pub fn other_id(self) -> Option<u32> {
        (self == Self::Ordinary && we_are_root()).then_some(ORDINARY_ID)
    }

    /// Has a command run as this user.
    pub fn apply(self, command: &mut Command) {
        if let Some(id) = self.other_id() {
            command.uid(id).gid(id);
        }
    }
}
