//! A program that makes children. They are not protected themselves, but none may be made twice.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;
use outlast_image::degradation::Degradation;

pub const CASES: &[Case] =
    &[Case::new("children", |_| Ok(Program::new(&[&program("children"), "150"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children])];
