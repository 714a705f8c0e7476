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
    /// Comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// One JSON object: campaign, rows, experiments
    #[arg(long)]
    json: bool,
    /// Also write a page with tables and plots, which loads nothing, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Report {
    pub fn execute(self) -> Result<i32, Error> {
        let results = match Results::read(&self.folder) {
            Ok(results) => results,
            Err(failure) => return Ok(inject::failed(&failure)),
        };
        if let Some(file) = &self.html {
            let page = match results.html() {
                Ok(page) => page,
                Err(failure) => return Ok(inject::failed(&failure)),
            };
            std::fs::write(file, page).map_err(Error::Output)?;
        }
        match (self.csv, self.json) {
            (true, _) => output::text(&results.csv()),
            (_, true) => output::json(&results.json()),
            _ => output::text(&results.text()),
        }
    }
}

/// Prints the table for a person.
pub fn text(folder: &Path) -> Result<i32, Error> {
    match Results::read(folder) {
        Ok(results) => output::text(&results.text()),
        Err(failure) => Ok(inject::failed(&failure)),
    }
}
