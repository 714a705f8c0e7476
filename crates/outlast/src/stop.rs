//! `outlast stop`: end a program for good.

use crate::{duration, state};
use clap::Args;
use outlast_supervisor::{ask, Error};
use std::time::Duration;

/// End a program for good
#[derive(Args)]
pub struct Stop {
    /// The program
    name: String,
    /// How long it may take to end by itself before it is killed
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    timeout: Duration,
}

impl Stop {
    pub fn execute(self) -> Result<i32, Error> {
        ask::stop(&state::open()?.program(&self.name)?, self.timeout).map(|()| 0)
    }
}
