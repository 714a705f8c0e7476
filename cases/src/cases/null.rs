//! A program that handles its own NULL dereferences.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] =
    &[Case::new("null", |_| Ok(Program::new(&[&program("null"), "4000"])), |_| Drive::Pipes(Input::none()))];
