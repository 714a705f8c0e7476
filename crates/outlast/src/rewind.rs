//! `outlast rewind`: back to an older state.

use crate::{protection, state};
use clap::Args;
use outlast_supervisor::generations::{choose, list, rewind, Wanted};
use outlast_supervisor::Error;
use std::path::PathBuf;

/// Have a program go back to an older state
///
/// It goes on from there, in its own terminal; states after that one are given up. What it sent since stays sent, what it read since
/// is not read again, and files stay as they are.
#[derive(Args)]
pub struct Rewind {
    /// The program
    name: String,
    /// A number that `outlast generations` lists, or an age: 30s takes the newest state that is at least so old
    #[arg(value_name = "AGE|GENERATION")]
    to: Wanted,
    /// Of a program that does not run: where the key file of its generations is now  [default: where `run --encrypt` found it]
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
}

impl Rewind {
    pub fn execute(self) -> Result<i32, Error> {
        let folder = state::open()?.program(&self.name)?;
        let number = choose(&self.name, &list(&folder)?, self.to)?;
        if !rewind(&folder, number, self.key.as_deref(), &protection::go_on(&[]), false)? {
            outlast_supervisor::say::say(format_args!(
                "{name} is in that state now; go on with `outlast resume {name}`",
                name = self.name
            ));
        }
        Ok(0)
    }
}
