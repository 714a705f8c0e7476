//! `outlast report`: tables and plots of injection campaigns.

use crate::{inject, output};
use clap::Args;
use outlast_inject::report::{markdown, Report as Results};
use outlast_inject::Error as Failure;
use outlast_supervisor::{say, Error};
use std::path::{Path, PathBuf};

/// Show what became of the faults of a campaign
#[derive(Args)]
pub struct Report {
    /// Folders with the results of `outlast inject`; several only with --markdown
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Comma-separated values
    #[arg(long, group = "form")]
    csv: bool,
    /// One JSON object: campaign, rows, experiments
    #[arg(long, group = "form")]
    json: bool,
    /// Tables in Markdown, of all folders together and of each
    #[arg(long, group = "form")]
    markdown: bool,
    /// Also write a page with tables and plots, which loads nothing, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Report {
    pub fn execute(self) -> Result<i32, Error> {
        if self.folders.len() > 1 && (!self.markdown || self.html.is_some()) {
            say::say(format_args!("several folders are reported together only with --markdown; name one"));
            return Ok(2);
        }
        match self.printed() {
            Ok(text) => output::text(&text),
            Err(failure) => Ok(inject::failed(&failure)),
        }
    }

    fn printed(&self) -> Result<String, Failure> {
        let results: Vec<Results> =
            self.folders.iter().map(|folder| Results::read(folder)).collect::<Result<_, _>>()?;
        if self.markdown {
            return Ok(markdown::text(&results));
        }
        let Some(results) = results.first() else { return Ok(String::new()) };
        if let Some(file) = &self.html {
            let page = results.html()?;
            std::fs::write(file, page).map_err(|e| Failure::File("write", file.clone(), e))?;
        }
        Ok(match (self.csv, self.json) {
            (true, _) => results.csv(),
            (_, true) => results.json().to_string() + "\n",
            _ => results.text(),
        })
    }
}

/// Prints the table for a person.
pub fn text(folder: &Path) -> Result<i32, Error> {
    match Results::read(folder) {
        Ok(results) => output::text(&results.text()),
        Err(failure) => Ok(inject::failed(&failure)),
    }
}
