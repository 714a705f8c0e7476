//! `outlast inject`: harm a program again and again, and see what becomes of it.

use crate::report;
use clap::Args;
use outlast_inject::{run, Error as Failure, Request};
use outlast_supervisor::{say, Error};
use std::path::PathBuf;

/// Inject faults into a program, with and without outlast, as a campaign file says
///
/// Results go to CAMPAIGN.results beside the file, a line a fault. Interrupted, the same command goes on with what is left.
#[derive(Args)]
pub struct Inject {
    /// The campaign file
    #[arg(value_name = "CAMPAIGN.toml")]
    campaign: PathBuf,
    /// Where results go
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Experiments at the same time, in place of the campaign's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl Inject {
    pub fn execute(self) -> Result<i32, Error> {
        let outlast = std::env::current_exe().map_err(|e| Error::Input("/proc/self/exe".into(), e))?;
        let request = Request { campaign: self.campaign, out: self.out, jobs: self.jobs.map(usize::from), outlast };
        match run(&request) {
            Ok(folder) => report::text(&folder),
            Err(failure) => Ok(failed(&failure)),
        }
    }
}

/// Says what failed; the exit status.
pub fn failed(failure: &Failure) -> i32 {
    say::say(format_args!("{failure}"));
    match failure {
        Failure::Campaign(_) | Failure::OtherCampaign(_) => 2,
        Failure::Interrupted => 130,
        _ => 1,
    }
}
