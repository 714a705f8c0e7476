//! Files changed in every way a rollback has to undo.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("transfers", |_| Ok(Program::new(&[&program("transfers"), "60"])), |_| Drive::Pipes(Input::none())),
    // Without io_uring a kill within splice may repeat it: see the degradation no-io-uring.
    Case::new(
        "splices",
        |_| Ok(Program::new(&[&program("transfers"), "60", "splice"])),
        |_| Drive::Pipes(Input::none()),
    )
    .ring_only(),
    Case::new("lent", |_| Ok(Program::new(&[&program("lent"), "400"])), |_| Drive::Pipes(Input::none())).ring_only(),
    Case::new("async_io", |_| Ok(Program::new(&[&program("async_io"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new("files", |_| Ok(Program::new(&[&program("files"), "600"])), |_| Drive::Pipes(Input::none())),
    Case::new("undo", |_| Ok(Program::new(&[&program("undo"), "4000"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "files_static",
        |_| Ok(Program::new(&[&program("files-static"), "600"])),
        |_| Drive::Pipes(Input::none()),
    ),
];
