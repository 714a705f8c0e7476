//! Why something could not be measured.

use displaydoc::Display;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;

/// Displayed as one line: it is the reason printed in place of a figure.
#[derive(Debug, Display, Error)]
pub enum Failure {
    /// cannot {0}: {1}
    Kernel(&'static str, io::Error),
    /// {0}: {1}
    File(PathBuf, io::Error),
    /// {0} did not end within {1} s
    TooLong(String, u64),
    /// {0} ended with {1}{2}
    Ended(String, ExitStatus, String),
    /// {0} told nothing sensible: {1:?}
    Unreadable(String, String),
    /// not possible here: {0}
    NotHere(String),
    /// the program ran unprotected: {0}
    Unprotected(String),
    /// a picture cannot be drawn: {0}
    Picture(String),
}

pub type Outcome<T> = Result<T, Failure>;

/// Says what was tried when the operating system refused.
pub trait Tried<T> {
    fn tried(self, what: &'static str) -> Outcome<T>;
    fn tried_on(self, path: impl Into<PathBuf>) -> Outcome<T>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: &'static str) -> Outcome<T> {
        self.map_err(|e| Failure::Kernel(what, e.into()))
    }

    fn tried_on(self, path: impl Into<PathBuf>) -> Outcome<T> {
        self.map_err(|e| Failure::File(path.into(), e.into()))
    }
}
