//! Descriptor numbers and offsets, descriptors on their way, and locks that go with them.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;
use outlast_image::degradation::Degradation;

pub const CASES: &[Case] = &[
    Case::new("descriptors", |_| Ok(Program::new(&[&program("descriptors"), "8000"])), |_| Drive::Pipes(Input::none())),
    Case::new("passes", |_| Ok(Program::new(&[&program("passes"), "300"])), |_| Drive::Pipes(Input::none())),
    // Only root gives a recovered process the number that it had.
    Case::new(
        "passes_by_number",
        |_| Ok(Program::new(&[&program("passes"), "300", "number"])),
        |_| Drive::Pipes(Input::none()),
    )
    .root_only(),
    Case::new("probed", |_| Ok(Program::new(&[&program("probed"), "600"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::Children]),
    Case::new("crowd", |_| Ok(Program::new(&[&program("crowd"), "20"])), |_| Drive::Pipes(Input::none())),
];
