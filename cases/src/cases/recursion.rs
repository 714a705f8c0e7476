//! A stack that grows between two calls.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] =
    &[Case::new("recursion", |_| Ok(Program::new(&[&program("recursion"), "25"])), |_| Drive::Pipes(Input::none()))];
