//! A program that talks to itself through a Unix socket pair, a pipe and an eventfd.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] =
    &[Case::new("pair", |_| Ok(Program::new(&[&program("pair"), "3000"])), |_| Drive::Pipes(Input::none()))];
