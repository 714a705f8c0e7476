//! Programs that want what the engine has or cannot bring back: they run on unprotected.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("segment", |_| Ok(Program::new(&[&program("segment"), "600"])), |_| Drive::Pipes(Input::none()))
        .with_threads()
        .may_report(&[Degradation::Children]),
    Case::new("jail", |_| Ok(Program::new(&[&program("jail"), "300"])), |_| Drive::Pipes(Input::none()))
        .root_only()
        .may_report(&[Degradation::ProcHidden]),
    Case::new("own_faults", |_| Ok(Program::new(&[&program("own_faults"), "100"])), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::OwnFaults]),
    Case::new(
        "own_faults_device",
        |_| Ok(Program::new(&[&program("own_faults"), "100", "device"])),
        |_| Drive::Pipes(Input::none()),
    )
    .root_only()
    .needs(&["/dev/userfaultfd"])
    .may_report(&[Degradation::OwnFaults]),
];
