//! Programs that take part: what they ask of outlast, and their functions before a commit and after a recovery.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("taking_part", |_| Ok(Program::new(&[&program("taking_part"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "taking_part_static",
        |_| Ok(Program::new(&[&program("taking_part-static"), "300"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new(
        "taking_part_threads",
        |_| Ok(Program::new(&[&program("taking_part"), "100", "3"])),
        |_| Drive::Pipes(Input::none()),
    ),
];
