//! Programs that end badly every time: after the retries their own status must come out.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("crash_segv", |_| crasher("segv"), |_| Drive::Pipes(Input::none())).is_given_up(),
    Case::new("crash_abort", |_| crasher("abort"), |_| Drive::Pipes(Input::none())).is_given_up(),
    Case::new("crash_fpe", |_| crasher("fpe"), |_| Drive::Pipes(Input::none())).is_given_up(),
    Case::new("crash_ill", |_| crasher("ill"), |_| Drive::Pipes(Input::none())).is_given_up(),
    Case::new("end_term", |_| crasher("term"), |_| Drive::Pipes(Input::none())),
    Case::new("end_exit", |_| crasher("exit"), |_| Drive::Pipes(Input::none())),
];

fn crasher(how: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("crasher"), "20", how]))
}
