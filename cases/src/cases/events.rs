//! Events that come once, of epoll and of inotify.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("watches", |_| Ok(Program::new(&[&program("watches"), "200"])), |_| Drive::Pipes(Input::none())),
    Case::new("one_shot", |_| Ok(Program::new(&[&program("one_shot"), "1500"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "one_shot_threads",
        |_| Ok(Program::new(&[&program("one_shot"), "800", "threads"])),
        |_| Drive::Pipes(Input::none()),
    ),
];
