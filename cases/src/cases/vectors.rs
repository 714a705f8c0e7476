//! Values that live in vector registers only.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new(
        "vectors",
        |_| Ok(Program::new(&[&program("vectors"), "1500", "20000"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new(
        "vectors_static",
        |_| Ok(Program::new(&[&program("vectors-static"), "1500", "20000"])),
        |_| Drive::Pipes(Input::none()),
    ),
];
