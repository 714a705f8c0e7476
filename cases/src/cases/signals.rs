//! Signals, each to be taken exactly once.

use std::time::Duration;

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("signals", |_| Ok(Program::new(&[&program("signals"), "200"])), |_| Drive::Pipes(Input::none())),
    Case::new("realtime", |_| Ok(Program::new(&[&program("realtime"), "200"])), |_| Drive::Pipes(Input::none())),
    Case::new("unwaiting", |_| Ok(Program::new(&[&program("unwaiting"), "60"])), |_| Drive::Pipes(Input::none())),
    Case::new("alarms", |_| Ok(Program::new(&[&program("alarms"), "60"])), |_| Drive::Pipes(Input::none())),
    // It begins with 40 ms of its own time that no output interrupts.
    Case::new(
        "interval_timers",
        |_| Ok(Program::new(&[&program("interval_timers"), "40"])),
        |_| Drive::Pipes(Input::none()),
    )
    .pace((Duration::from_millis(3), Duration::from_millis(80))),
    Case::new("storm", |_| Ok(Program::new(&[&program("storm"), "150"])), |_| Drive::Pipes(Input::none())),
    Case::new("clocks", |_| Ok(Program::new(&[&program("clocks"), "60"])), |_| Drive::Pipes(Input::none())),
    Case::new("masks", |_| Ok(Program::new(&[&program("masks"), "20"])), |_| Drive::Pipes(Input::none())),
    Case::new("masked_execs", |_| Ok(Program::new(&[&program("masked_execs"), "30"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new("blocked", |_| Ok(Program::new(&[&program("blocked"), "10"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
];
