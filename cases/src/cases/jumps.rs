//! setjmp and longjmp, with and without the signal mask.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] =
    &[Case::new("jumps", |_| Ok(Program::new(&[&program("jumps"), "8000"])), |_| Drive::Pipes(Input::none()))];
