//! Shared memory, message queues and semaphores of System V, message queues of POSIX.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("segments", |_| Ok(Program::new(&[&program("segments"), "400"])), |_| Drive::Pipes(Input::none())),
    Case::new("queues", |_| Ok(Program::new(&[&program("queues"), "1000"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "queues_threads",
        |_| Ok(Program::new(&[&program("queues"), "400", "threads"])),
        |_| Drive::Pipes(Input::none()),
    )
    .with_threads(),
];
