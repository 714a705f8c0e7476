//! Who the program is must not change, and time must not run backwards.

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Input, Script};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("identity", |_| Ok(Program::new(&[&program("identity"), "1500"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "identity_terminal",
        |_| Ok(Program::new(&[&program("identity"), "800"])),
        |_| Drive::Terminal(Script::new(Vec::new()).exactly()),
    ),
    Case::new(
        "identity_limits",
        |_| Ok(Program::new(&[&program("identity"), "1500", "limits"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("folders", |_| Ok(Program::new(&[&program("folders"), "400"])), |_| Drive::Pipes(Input::none())),
    Case::new("rooted", |_| Ok(Program::new(&[&program("rooted"), "200"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD)
        .root_only()
        .forbidden_in_docker(),
    Case::new("jail", |_| Ok(Program::new(&[&program("jail"), "300"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD)
        .root_only()
        .forbidden_in_docker(),
    Case::new("procfs", |_| Ok(Program::new(&[&program("procfs"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new("numbers", |_| Ok(Program::new(&[&program("numbers"), "200", "4"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "numbers_alone",
        |_| Ok(Program::new(&[&program("numbers"), "400", "0"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("pidfds", |_| Ok(Program::new(&[&program("pidfds"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "pidfds_threads",
        |_| Ok(Program::new(&[&program("pidfds"), "150", "3"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("cpu_clocks", |_| Ok(Program::new(&[&program("cpu_clocks"), "40"])), |_| Drive::Pipes(Input::none())),
    Case::new("reset", |_| Ok(Program::new(&[&program("reset"), "1200"])), |_| Drive::Pipes(Input::none())),
    Case::new("barriers", |_| Ok(Program::new(&[&program("barriers"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new("sleeper", |_| Ok(Program::new(&[&program("sleeper"), "60"])), |_| Drive::Pipes(Input::none())),
];
