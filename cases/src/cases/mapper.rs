//! Mappings made, moved, discarded; the heap grown and shrunk.

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("codes", |_| Ok(Program::new(&[&program("codes"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "codes_strict",
        |_| Ok(Program::new(&[&program("codes"), "300", "strict"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("pieces", |_| Ok(Program::new(&[&program("pieces"), "200"])), |_| Drive::Pipes(Input::none())),
    Case::new("mapper", |_| Ok(Program::new(&[&program("mapper"), "1500"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new(
        "mapper_static",
        |_| Ok(Program::new(&[&program("mapper-static"), "1500"])),
        |_| Drive::Pipes(Input::none()),
    )
    .pace(SPREAD),
];
