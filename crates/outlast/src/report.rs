//! `outlast report`: tables and plots of an injection campaign.

use crate::{inject, output};
use clap::Args;
use outlast_inject::report::Report as Results;
use outlast_supervisor::Error;
use std::path::{Path, PathBuf};

/// Show what became of the faults of a campaign
#[derive(Args)]
pub struct Report {
    /// The folder with the results of `outlast inject`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Report {
    pub fn execute(self) -> Result<i32, Error> {
        text(&self.folder)
    }
}

/// Prints the table for a person.
pub fn text(folder: &Path) -> Result<i32, Error> {
    match Results::read(folder) {
        Ok(results) => output::text(&results.text()),
        Err(failure) => Ok(inject::failed(&failure)),
    }
}
