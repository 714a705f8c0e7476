//! The file of a program.

use super::finding::Finding;
use outlast_supervisor::{program, Error};
use std::ffi::OsStr;

/// What its file alone tells. An error if it cannot be executed at all.
pub fn look(command: &OsStr) -> Result<Vec<Finding>, Error> {
    let file = program::find(command)?;
    Ok(vec![match program::obstacle(&file) {
        Some(obstacle) => Finding::degradation(obstacle),
        None => Finding::kept("program", format!("{} can be protected", file.display())),
    }])
}
