//! What can keep a campaign from being run or reported.

use displaydoc::Display;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Displayed as one line that says what was tried, on what, and what to do next.
#[derive(Debug, Display, Error)]
pub enum Error {
    /// {0}
    Campaign(String),
    /// cannot {0} {1}: {2}
    File(&'static str, PathBuf, io::Error),
    /// {0}: results of another campaign file; give another folder with --out, or remove this one
    OtherCampaign(PathBuf),
    /// {0}: line {1} is no result of this version; remove the folder, or take the outlast that wrote it
    BadResults(PathBuf, usize),
    /// {0}: another campaign writes to it; wait for its end, or give another folder with --out
    Busy(PathBuf),
    /// {0}: results go to a folder that is yours and that nobody else may write to; give another one with --out
    NotOurs(PathBuf),
    /// the unharmed target does not run: {0}
    Unharmed(String),
    /// cannot prepare the target's folder: {0}
    Prepare(String),
    /// {0}
    Outlast(#[from] outlast_supervisor::Error),
    /// cannot draw a plot: {0}
    Plot(String),
    /// interrupted; the same command goes on with what is left
    Interrupted,
}

/// A failure of an operation on a file, in the words of [`Error::File`].
pub fn on(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |e| Error::File(doing, path, e)
}
