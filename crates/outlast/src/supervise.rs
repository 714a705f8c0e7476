//! `outlast supervise`: how outlast starts itself for a program whose supervisor is gone.

use crate::protection;
use clap::Args;
use outlast_supervisor::adopt::Again;
use outlast_supervisor::{adopt, again, departure, Error};
use std::os::fd::RawFd;

/// Watch a program whose supervisor is gone
#[derive(Args)]
pub struct Supervise {
    name: String,
    /// Descriptor that holds the program's lock
    #[arg(long)]
    lock: Option<RawFd>,
    /// This process has watched it before
    #[arg(long, requires = "lock")]
    again: bool,
    /// This process was another outlast before
    #[arg(long, requires = "again")]
    upgraded: bool,
    /// A module failed: its name and how, each time
    #[arg(long, value_name = "MODULE=NUMBER")]
    failed: Vec<String>,
    /// The program's process ended: its exit status, or less than 0: a signal
    #[arg(long, allow_hyphen_values = true)]
    ended: Option<i64>,
}

impl Supervise {
    pub fn execute(self) -> Result<i32, Error> {
        let load = protection::go_on(&self.failed);
        match self.lock {
            Some(lock) if self.again => {
                let again = Again {
                    failures: self.failed.clone(),
                    ended: self.ended.map(again::end_of),
                    is_upgraded: self.upgraded,
                };
                departure::depart(adopt::begin_again(&self.name, lock, again, &load)?)
            }
            lock => adopt::adopt(&self.name, lock, &load).map(|()| 0),
        }
    }
}
