//! Programs that give up privileges: a recovery must not give them back.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;

fn filters(mode: &str, rounds: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("filters"), mode, rounds]))
}

fn filters_exec(name: &str, mode: &str, rounds: &str, images: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program(name), mode, rounds, images]))
}

pub const CASES: &[Case] = &[
    Case::new("privileges", |_| Ok(Program::new(&[&program("privileges"), "300"])), |_| Drive::Pipes(Input::none()))
        .root_only()
        // Who gave up its privileges may not choose a process id any more.
        .may_report(&[Degradation::PidChanged]),
    Case::new("filters", |_| filters("deny", "200"), |_| Drive::Pipes(Input::none())),
    Case::new("filters_threads", |_| filters("deny-threads", "200"), |_| Drive::Pipes(Input::none())),
    Case::new("filters_narrow", |_| filters("narrow", "1000"), |_| Drive::Pipes(Input::none())),
    // Without io_uring, with faults of its own, and without a choice of numbers.
    Case::new("filters_bare", |_| filters("bare", "1000"), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::NoRing, Degradation::PidChanged]),
    // Without the engine, which must be gone before.
    Case::new("filters_closed", |_| filters("closed", "300"), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::CallFilter]),
    Case::new("filters_closed_threads", |_| filters("closed-threads", "300"), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::CallFilter]),
    Case::new("filters_strict", |_| filters("strict", "300"), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::CallFilter]),
    Case::new("execs", |_| filters_exec("filters_exec", "none", "20", "8"), |_| Drive::Pipes(Input::none())),
    // They stay when the program becomes another one.
    Case::new("filters_exec", |_| filters_exec("filters_exec", "deny", "20", "8"), |_| Drive::Pipes(Input::none())),
    Case::new(
        "filters_exec_narrow",
        |_| filters_exec("filters_exec-static", "narrow", "20", "8"),
        |_| Drive::Pipes(Input::none()),
    )
    .may_report(&[Degradation::NoRing, Degradation::PidChanged]),
    Case::new(
        "filters_exec_closed",
        |_| filters_exec("filters_exec", "no-pair", "50", "3"),
        |_| Drive::Pipes(Input::none()),
    )
    .may_report(&[Degradation::CallFilter]),
    Case::new("filters_killed", |_| filters("killed", "50"), |_| Drive::Pipes(Input::none())).is_given_up(),
    Case::new("landlock", |_| Ok(Program::new(&[&program("landlock"), "150"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "landlock_threads",
        |_| Ok(Program::new(&[&program("landlock"), "150", "threads"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("sandbox", |_| Ok(Program::new(&[&program("sandbox"), "3000"])), |_| Drive::Pipes(Input::none())),
];
