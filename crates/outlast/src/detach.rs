//! `outlast detach`: leave a program alone.

use crate::state;
use clap::Args;
use outlast_supervisor::{ask, Error};

/// Leave a program alone: it runs on, without protection
///
/// Its calls, signals and memory are the kernel's affair again; of the engine only text and data stay mapped, unused. A wait with a
/// time-out that is under way begins anew.
#[derive(Args)]
pub struct Detach {
    /// The program
    name: String,
}

impl Detach {
    pub fn execute(self) -> Result<i32, Error> {
        ask::detach(&state::open()?.program(&self.name)?).map(|()| 0)
    }
}
