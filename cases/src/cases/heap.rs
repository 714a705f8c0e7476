//! Random updates all over the heap, summed up.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new(
        "heap",
        |_| Ok(Program::new(&[&program("heap"), "6000", "200", "20000"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new(
        "heap_static",
        |_| Ok(Program::new(&[&program("heap-static"), "6000", "200", "20000"])),
        |_| Drive::Pipes(Input::none()),
    ),
];
