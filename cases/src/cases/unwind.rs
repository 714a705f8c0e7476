//! C++ exceptions across frames.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] =
    &[Case::new("unwind", |_| Ok(Program::new(&[&program("unwind"), "4000"])), |_| Drive::Pipes(Input::none()))];
