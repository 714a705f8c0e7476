//! `outlast rm`: forget a program that does not run.

use crate::state;
use clap::Args;
use outlast_supervisor::{remains::Remains, Error};

/// Remove the store and the log of a program that does not run
#[derive(Args)]
pub struct Rm {
    /// The program
    name: String,
}

impl Rm {
    pub fn execute(self) -> Result<i32, Error> {
        let folder = state::open()?.program(&self.name)?;
        Remains::remove(folder).map(|()| 0)
    }
}
