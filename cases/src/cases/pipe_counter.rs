//! A tight loop of numbered writes into a pipe.

use crate::case::{Case, Program, Stage};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;

pub const CASE: Case = Case::new("pipe_counter", start, drive);

fn start(_: &Stage) -> Outcome<Program> {
    Ok(Program::new(&[&program("counter"), "20000"]))
}

fn drive(_: &Stage) -> Drive {
    Drive::Pipes(Input::none().sipping(3000))
}
