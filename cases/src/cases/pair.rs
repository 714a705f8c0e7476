//! Programs that talk to themselves: through a Unix socket pair, a pipe and an eventfd; in several messages a call; over connections
//! that are shut; and what may be asked of the kernel only once.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("pair", |_| Ok(Program::new(&[&program("pair"), "3000"])), |_| Drive::Pipes(Input::none())),
    Case::new("shut", |_| Ok(Program::new(&[&program("shut"), "400"])), |_| Drive::Pipes(Input::none())),
    Case::new("again", |_| Ok(Program::new(&[&program("again"), "60"])), |_| Drive::Pipes(Input::none())),
    Case::new("messages", |_| Ok(Program::new(&[&program("messages"), "800"])), |_| Drive::Pipes(Input::none())),
];
