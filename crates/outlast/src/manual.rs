//! `outlast manual`: writes the manual pages, for packagers.

use crate::cli::Cli;
use clap::{Args, CommandFactory};
use outlast_supervisor::Error;
use std::path::PathBuf;

/// Write the manual pages into a folder
#[derive(Args)]
pub struct Manual {
    folder: PathBuf,
}

impl Manual {
    pub fn execute(self) -> Result<i32, Error> {
        clap_mangen::generate_to(Cli::command(), &self.folder).map(|()| 0).map_err(Error::Output)
    }
}
