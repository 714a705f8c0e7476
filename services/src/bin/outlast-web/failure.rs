//! What the server ends with.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use displaydoc::Display;
use outlast_glue_rt::{CallError, SystemError, Unusable};
use thiserror::Error;

/// {call}: {error}
#[derive(Clone, Copy, Debug, Display, Error, PartialEq, Eq)]
pub struct CallFailed {
    pub call: &'static str,
    pub error: CallError,
}

#[derive(Debug, Display, Error)]
pub enum Failure {
    /// cannot listen on {0}: {1}
    Listen(String, io::Error),
    /// {0}
    Component(#[from] SystemError),
    /// a call failed: {0}
    Call(#[from] CallFailed),
    /// cannot open a channel to the component `{0}`: {1}
    Channel(&'static str, io::Error),
    /// cannot start the content process: {0}
    Content(io::Error),
    /// the content process has ended
    ContentEnded,
    /// the content process has said why it does not serve
    Said,
    /// cannot read {0}: {1}
    Read(PathBuf, io::Error),
    /// {0} does not fit the RAM file system ({1}): a file has at most 32 MiB, all together 256 MiB in 8192 files and folders
    Full(PathBuf, CallFailed),
    /// cannot write the log {0}: {1}
    Log(PathBuf, io::Error),
    /// shared memory is gone or too small ({0:?})
    Memory(Unusable),
    /// two threads have the same lock
    NotExclusive,
    /// cannot wait for connections: {0}
    Poll(io::Error),
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        Self::Memory(unusable)
    }
}

/// Set when the end is wanted: what fails from then on is not worth a word.
static ENDING: AtomicBool = AtomicBool::new(false);

pub fn ending() {
    ENDING.store(true, Ordering::SeqCst);
}

/// Ends this process, and its components with it.
pub fn fail(failure: &Failure) -> ! {
    if ENDING.load(Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
    eprintln!("outlast-web: {failure}");
    std::process::exit(1);
}

/// Starts a thread that the server is nothing without.
pub fn part(name: &str, body: impl FnOnce() -> Result<(), Failure> + Send + 'static) -> Result<(), io::Error> {
    let body = move || {
        if let Err(failure) = body() {
            fail(&failure);
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(body).map(drop)
}
