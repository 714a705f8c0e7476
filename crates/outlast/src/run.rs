//! `outlast run`

use clap::Args;
use outlast_supervisor::options::Options;
use outlast_supervisor::start::{run, Request};
use outlast_supervisor::{departure, Error};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program so that it outlasts its own death
#[derive(Args)]
pub struct Run {
    /// Name for ps, log, resume …; made from the program's if not given
    #[arg(long)]
    name: Option<String>,
    /// Folder for the store, to survive power loss; in memory if not given
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    argv: Vec<OsString>,
}

impl Run {
    pub fn execute(self) -> Result<i32, Error> {
        let options = Options::default();
        departure::depart(run(&Request { argv: self.argv, name: self.name, store: self.store, options })?)
    }
}
