//! Programs that give up privileges: a recovery must not give them back.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("privileges", |_| Ok(Program::new(&[&program("privileges"), "300"])), |_| Drive::Pipes(Input::none()))
        .root_only()
        // Who gave up its privileges may not choose a process id any more.
        .may_report(&[Degradation::PidChanged]),
    Case::new("sandbox", |_| Ok(Program::new(&[&program("sandbox"), "3000"])), |_| Drive::Pipes(Input::none())),
];
