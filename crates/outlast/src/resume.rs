//! `outlast resume`: everything of a program died but its store.

use crate::{protection, state};
use clap::Args;
use outlast_supervisor::{departure, resume, Error};
use std::path::PathBuf;

/// Go on, in this terminal, with a program of which only the store is left
#[derive(Args)]
pub struct Resume {
    /// The program
    name: String,
    /// Folder that `run --store` was given
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Where the key file of its generations is now  [default: where `run --encrypt` found it]
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
}

impl Resume {
    pub fn execute(self) -> Result<i32, Error> {
        state::open()?;
        departure::depart(resume::resume(
            &self.name,
            self.store.as_deref(),
            self.key.as_deref(),
            &protection::go_on(&[]),
        )?)
    }
}
