//! The file of a program.

use super::finding::Finding;
use outlast_supervisor::{loader, program, Error};
use std::ffi::OsStr;

/// What its file alone tells. An error if it cannot be executed at all.
pub fn look(command: &OsStr) -> Result<Vec<Finding>, Error> {
    let file = program::find(command)?;
    if let Some(missing) = loader::missing(&file) {
        let text = format!("{} cannot be executed: {} does not exist", file.display(), missing.display());
        return Ok(vec![Finding::lost("loader", text, Some("install that, or use a build for this system"))]);
    }
    Ok(vec![match program::obstacle(&file) {
        Some(obstacle) => Finding::degradation(obstacle),
        None => Finding::kept("program", format!("{} can be protected", file.display())),
    }])
}
