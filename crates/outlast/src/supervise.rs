//! `outlast supervise`: how outlast starts itself for a program whose supervisor is gone.

use clap::Args;
use outlast_supervisor::{adopt, Error};
use std::os::fd::RawFd;

/// Watch a program whose supervisor is gone
#[derive(Args)]
pub struct Supervise {
    name: String,
    /// Descriptor that holds the program's lock
    #[arg(long)]
    lock: Option<RawFd>,
}

impl Supervise {
    pub fn execute(self) -> Result<i32, Error> {
        adopt::adopt(&self.name, self.lock).map(|()| 0)
    }
}
