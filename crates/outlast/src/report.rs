//! `outlast report`: tables and plots of injection campaigns.

use crate::{inject, listing, output};
use clap::Args;
use outlast_inject::judge::{Category, CATEGORIES};
use outlast_inject::report::{markdown, Report as Results};
use outlast_inject::Error as Failure;
use outlast_supervisor::{say, Error};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Show what became of the faults of a campaign
#[derive(Args)]
pub struct Report {
    /// Folders with the results of `outlast inject`; several only with --markdown
    #[arg(value_name = "DIR", required_unless_present = "classes")]
    folders: Vec<PathBuf>,
    /// List the classes of outcomes, and RMK's (Table 4) that they belong to
    #[arg(long, conflicts_with_all = ["folders", "html"])]
    classes: bool,
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

/// A category of RMK's Table 4.
#[derive(Serialize)]
struct OfTable4 {
    name: &'static str,
    what: &'static str,
    /// What `outlast report` calls it.
    classes: Vec<&'static str>,
    /// Why it is never seen; null: it is.
    missing: Option<&'static str>,
}

impl Report {
    pub fn execute(self) -> Result<i32, Error> {
        if self.classes {
            return self.list_classes();
        }
        if self.folders.len() > 1 && (!self.markdown || self.html.is_some()) {
            say::say(format_args!("several folders are reported together only with --markdown; name one"));
            return Ok(2);
        }
        match self.printed() {
            Ok(text) => output::text(&text),
            Err(failure) => Ok(inject::failed(&failure)),
        }
    }

    fn list_classes(&self) -> Result<i32, Error> {
        let row = |category: &Category| OfTable4 {
            name: category.name,
            what: category.what,
            classes: category.ours.iter().map(|class| class.name()).collect(),
            missing: category.ours.is_empty().then_some(outlast_interfaces::KERNEL_SIDE),
        };
        let rows: Vec<_> = CATEGORIES.iter().map(row).collect();
        listing::print(self.json, &rows, ["CATEGORY", "CLASSES", "WHAT"], |row| {
            let what = row.missing.map_or(row.what.into(), |why| format!("{} ({why})", row.what));
            [row.name.into(), listing::names(&row.classes), what]
        })
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
