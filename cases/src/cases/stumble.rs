//! A program that meets every fatal signal, but never twice at the same place.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[Case::new(
    "stumble",
    |stage| {
        let stumbler = Program::new(&[&program("stumble"), "25"]);
        Ok(if stage.unharmed { stumbler.with_env("HARMLESS", "1") } else { stumbler })
    },
    |_| Drive::Pipes(Input::none()),
)
.stumbles()];
