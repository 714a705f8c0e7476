//! What can go wrong in the demonstration, each with what to do next.

use displaydoc::Display;
use std::io;
use thiserror::Error;

#[derive(Debug, Display, Error)]
pub enum Failure {
    /// cannot {0}: {1}
    Kernel(&'static str, io::Error),
    /// there is no python3 on PATH; install it with `make install-deps`
    NoPython,
    /// {0} is missing; build it with `make build`
    NoOutlast(String),
    /// the terminal did not show {0:?} within {1} s; it ended with {2:?}
    Silent(&'static str, u64, String),
    /// `outlast {0}` failed: {1}
    Command(String, String),
    /// after kill {0} the log names no recovery within {1} s; see `outlast log {2}`
    NotRecovered(usize, u64, String),
    /// the answers differ from those of an unharmed python3, first at byte {0}: {1:?} in place of {2:?}; see `outlast log {3}`
    Differs(usize, String, String, String),
    /// python3 ended with {0} in place of {1}; see `outlast log {2}`
    Status(String, String, String),
}

pub type Outcome<T> = Result<T, Failure>;

/// Says what was tried when the operating system refused.
pub trait Tried<T> {
    fn tried(self, what: &'static str) -> Outcome<T>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: &'static str) -> Outcome<T> {
        self.map_err(|e| Failure::Kernel(what, e.into()))
    }
}
