//! What can go wrong before a program runs, in words for the person who typed the command.

use crate::foreign_filter::Refused;
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
    /// name {0} is taken; choose another, or free it: `outlast ps` shows whether to stop, resume or rm it
    NameTaken(String),
    /// no program named {0}; `outlast ps` lists them
    NoSuchProgram(String),
    /// state folder {0}: {1}; make it a folder of yours with mode 0700, or set OUTLAST_STATE_DIR
    BadStateFolder(PathBuf, &'static str),
    /// state folder {0}: {1}; set OUTLAST_STATE_DIR to a folder that can be made on a tmpfs
    StateFolder(PathBuf, Errno),
    /// {0} does not run; `outlast ps` says what does
    NotRunning(String),
    /// {0} runs; stop it with `outlast stop {0}` first
    Running(String),
    /// {0} is not protected; `outlast log {0}` says why
    NotProtected(String),
    /// {0} came to no point where it could commit; is it stopped, or stuck in the kernel?
    NoCommit(String),
    /// {0} cannot be left alone just now: it has input to read again, or another process id than it knows; `outlast ps` says which
    NotDetached(String),
    /// {0} does not end; it may be stuck in the kernel
    NotStopped(String),
    /// nothing is left to resume {0} from: it ended by itself
    NothingLeft(String),
    /// {0} keeps no generations; start it with `outlast run --generations 10s`, or call `outlast module add generations {0}`
    NoGenerations(String),
    /// {0} has no such generation; there are {1}
    NoSuchGeneration(String, String),
    /// {0}: {1}; `outlast generations {0}` lists what is kept
    Generation(String, outlast_archive::ArchiveError),
    /// key file {0}: {1}
    KeyFile(PathBuf, String),
    /// key file {0}: the program's generations are not encrypted; leave it away
    NotEncrypted(PathBuf),
    /// {0} cannot go back: its generations are encrypted, and its supervisor lacks the key; `outlast log {0}` says why
    KeyMissing(String),
    /// {0} cannot go back just now: it is not protected, or goes back or becomes another program already; try again
    NotNow(String),
    /// {0} could not be brought back; `outlast log {0}` says why
    NotBack(String),
    /// store folder {0}: {1}; make it a folder of yours with mode 0700
    BadStoreFolder(PathBuf, &'static str),
    /// it could not be resumed from its store: {0}
    Unresumable(String),
    /// {0}: the store {1}
    Unreadable(PathBuf, &'static str),
    /// {0}: {1}
    File(PathBuf, Errno),
    /// cannot {0}: {1}
    Kernel(&'static str, Errno),
    /// a filter of system calls (seccomp) that was there before outlast refuses {0}; have it allow that
    Forbidden(Refused),
    /// the engine built into outlast cannot be used: {0}; build outlast again
    BadEngine(&'static str),
    /// cannot read {0}: {1}
    Input(PathBuf, std::io::Error),
    /// cannot write: {0}
    Output(std::io::Error),
    /// it cannot be protected as asked: {0}
    Module(String),
    /// {0} is protected as before: {1}
    NotChanged(String, String),
    /// module {0}: {1}
    Plugin(String, String),
    /// {0} is watched by the outlast that it has, as before: {1}
    NotUpgraded(String, String),
    /// outlast is off; `outlast on` switches it on again
    Off,
    /// daemon: {0}
    Daemon(String),
    /// process {0} is not attached to: {1}
    NotAttached(libc::pid_t, String),
    /// argument {0:?} contains a NUL byte
    NulByte(String),
}

impl Error {
    /// Is a file system full, or a limit reached to what may be in it?
    pub fn is_lack_of_room(&self) -> bool {
        matches!(self, Self::File(_, Errno::NOSPC | Errno::DQUOT | Errno::FBIG))
    }

    /// Is it the program itself that cannot be executed?
    pub fn is_of_the_program(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NotExecutable(..))
    }

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
