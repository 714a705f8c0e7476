//! Why a policy file does not count.

use displaydoc::Display;
use std::path::PathBuf;
use thiserror::Error;

/// {file}:{line}: {reason}
#[derive(Clone, Debug, PartialEq, Eq, Display, Error)]
pub struct Refusal {
    pub file: PathBuf,
    /// From 1 on; 0: it is about the file as a whole.
    pub line: usize,
    pub reason: String,
}
