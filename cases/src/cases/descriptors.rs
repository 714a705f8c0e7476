//! Descriptor numbers and offsets.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("descriptors", |_| Ok(Program::new(&[&program("descriptors"), "8000"])), |_| Drive::Pipes(Input::none())),
    Case::new("crowd", |_| Ok(Program::new(&[&program("crowd"), "20"])), |_| Drive::Pipes(Input::none())),
];
