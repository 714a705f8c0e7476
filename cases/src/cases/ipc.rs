//! Shared memory, message queues and semaphores of System V, message queues of POSIX.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;
use outlast_image::degradation::Degradation;

fn notify(kind: &str, more: &[&str]) -> Outcome<Program> {
    let program = program("notify");
    let argv = [&[program.as_str(), kind, "100"], more].concat();
    Ok(Program::new(&argv))
}

pub const CASES: &[Case] = &[
    Case::new("segments", |_| Ok(Program::new(&[&program("segments"), "400"])), |_| Drive::Pipes(Input::none())),
    Case::new("queues", |_| Ok(Program::new(&[&program("queues"), "1000"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "queues_threads",
        |_| Ok(Program::new(&[&program("queues"), "400", "threads"])),
        |_| Drive::Pipes(Input::none()),
    ),
    // What another process takes at once, so that the queues do not tell.
    Case::new("queues_handed", |_| Ok(Program::new(&[&program("handed"), "600"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
    Case::new("objects", |_| Ok(Program::new(&[&program("objects"), "100"])), |_| Drive::Pipes(Input::none())),
    Case::new("undone", |_| Ok(Program::new(&[&program("undone"), "300"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
    Case::new(
        "undone_exec",
        |_| Ok(Program::new(&[&program("undone"), "300", "remake"])),
        |_| Drive::Pipes(Input::none()),
    )
    .may_report(&[Degradation::Children]),
    Case::new(
        "undone_alone",
        |_| Ok(Program::new(&[&program("undone"), "300", "alone"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("notify", |_| notify("signal", &[]), |_| Drive::Pipes(Input::none())),
    Case::new("notify_realtime", |_| notify("realtime", &[]), |_| Drive::Pipes(Input::none())),
    Case::new("notify_wait", |_| notify("wait", &[]), |_| Drive::Pipes(Input::none())),
    Case::new("notify_file", |_| notify("file", &[]), |_| Drive::Pipes(Input::none())),
    Case::new("notify_none", |_| notify("none", &[]), |_| Drive::Pipes(Input::none())),
    Case::new("notify_thread", |_| notify("thread", &[]), |_| Drive::Pipes(Input::none())),
    // By another process, which is not protected and goes on while the program is dead.
    Case::new("notify_apart", |_| notify("signal", &["apart"]), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
    Case::new("notify_realtime_apart", |_| notify("realtime", &["apart"]), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
    Case::new("notify_thread_apart", |_| notify("thread", &["apart"]), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
];
