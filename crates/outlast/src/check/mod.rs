//! `outlast check`: what will be preserved, what not, and what would help.

mod advice;
mod file;
mod filters;
mod finding;
mod machine;
mod process;
mod trial;

use crate::output;
use crate::state;
use clap::Args;
use finding::{Finding, Report};
use outlast_supervisor::{foreign_filter, Error};
use std::ffi::OsString;

/// Tell what protection would preserve, what not, and what would help
///
/// A small program is started, killed and recovered here and now. Exit status 0: protection is whole; 1: it is not.
#[derive(Args)]
#[command(
    after_help = "With a PID: what is lost of a program that runs under protection, or would be of one that does not."
)]
pub struct Check {
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// A program that runs
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// A program and its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "pid")]
    program: Vec<OsString>,
}

impl Check {
    pub fn execute(self) -> Result<i32, Error> {
        let mut findings: Vec<Finding> = Vec::new();
        let state = state::open()?;
        if let Some(pid) = self.pid {
            if let Some(protected) = process::protected(&state, pid)? {
                return self.print(&Report::of(protected));
            }
            findings.extend(process::look(pid)?);
        }
        if let Some(program) = self.program.first() {
            findings.extend(file::look(program)?);
        }
        findings.extend(filters::look());
        findings.extend(machine::look(&state));
        // Where nothing can be protected there is nothing to try.
        if foreign_filter::obstacle().is_none() {
            findings.extend(trial::make(&state));
        }
        self.print(&Report::of(findings))
    }

    fn print(&self, report: &Report) -> Result<i32, Error> {
        let status = i32::from(!report.whole);
        match self.json {
            true => output::json(report)?,
            false => output::text(&report.text())?,
        };
        Ok(status)
    }
}
