//! `outlast commit`: commit now.

use crate::state;
use clap::Args;
use outlast_supervisor::{ask, Error};

/// Have a program commit now
#[derive(Args)]
pub struct Commit {
    /// The program
    name: String,
}

impl Commit {
    pub fn execute(self) -> Result<i32, Error> {
        ask::commit(&state::open()?.program(&self.name)?).map(|()| 0)
    }
}
