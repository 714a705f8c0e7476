//! What can go wrong before a program runs, in words for the person who typed the command.

use displaydoc::Display;
use rustix::io::Errno;
use std::path::PathBuf;
use thiserror::Error;

/// Displayed as one line that says what was tried, on what, and what to do next.
#[derive(Debug, Display, Error)]
pub enum Error {
    /// {0}: command not found
    NotFound(String),
    /// {0}: cannot execute: {1}
    NotExecutable(String, Errno),
    /// name {0:?}: use 1 to 64 of the characters A-Z a-z 0-9 . _ -
    BadName(String),
    /// name {0} is taken; choose another with --name, or look with `outlast ps`
    NameTaken(String),
    /// no program named {0}; `outlast ps` lists them
    NoSuchProgram(String),
    /// state folder {0}: {1}; make it a folder of yours with mode 0700, or set OUTLAST_STATE_DIR
    BadStateFolder(PathBuf, &'static str),
    /// state folder {0}: {1}; set OUTLAST_STATE_DIR to a folder that can be made on a tmpfs
    StateFolder(PathBuf, Errno),
    /// store folder {0}: {1}; make it a folder of yours with mode 0700
    BadStoreFolder(PathBuf, &'static str),
    /// it could not be resumed from its store: {0}
    Unresumable(String),
    /// {0}: {1}
    File(PathBuf, Errno),
    /// cannot {0}: {1}
    Kernel(&'static str, Errno),
    /// the engine built into outlast cannot be used: {0}; build outlast again
    BadEngine(&'static str),
    /// argument {0:?} contains a NUL byte
    NulByte(String),
}

impl Error {
    /// The exit status a shell would give: 127 not found, 126 not executable, 2 bad usage, 1 anything else.
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable(..) => 126,
            Self::BadName(_) | Self::NameTaken(_) | Self::NoSuchProgram(_) | Self::NulByte(_) => 2,
            _ => 1,
        }
    }
}
