//! `outlast manual`: writes the manual pages, for packagers.

use crate::cli::Cli;
use clap::{Args, CommandFactory};
use outlast_supervisor::Error;
use std::path::PathBuf;

/// For programs that take part.
const HEADER: &str = include_str!("../../api/outlast.h.3");

/// Write the manual pages into a folder
#[derive(Args)]
pub struct Manual {
    folder: PathBuf,
}

impl Manual {
    pub fn execute(self) -> Result<i32, Error> {
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .and_then(|()| std::fs::write(self.folder.join("outlast.h.3"), HEADER))
            .map(|()| 0)
            .map_err(Error::Output)
    }
}
