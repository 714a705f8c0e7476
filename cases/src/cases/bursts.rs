//! A program whose outputs leave together: to its standard output, to sockets and to a pipe of its own.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;
use outlast_image::degradation::Degradation;

pub const CASES: &[Case] =
    &[Case::new("bursts", |_| Ok(Program::new(&[&program("bursts"), "400"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children])];
