//! Programs that want what the engine has or cannot bring back: they run on unprotected.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("segment", |_| Ok(Program::new(&[&program("segment"), "600"])), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker()
        .may_report(&[Degradation::Children]),
    Case::new("page_server", |_| Ok(page_server("thread", "300")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_polling", |_| Ok(page_server("polling", "300")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_several", |_| Ok(page_server("several", "200")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_signal", |_| Ok(page_server("signal", "300")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_moving", |_| Ok(page_server("moving", "300")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_barrier", |_| Ok(page_server("barrier", "300")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("page_server_kernel", |_| Ok(page_server("kernel", "300")), |_| Drive::Pipes(Input::none()))
        .root_only()
        .needs_kernels_tracker(),
    Case::new("page_server_life", |_| Ok(page_server("life", "200")), |_| Drive::Pipes(Input::none()))
        .needs_kernels_tracker(),
    Case::new("own_faults_forked", |_| Ok(own_faults("forked")), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::OwnFaults, Degradation::Children])
        .forbidden_in_docker(),
    Case::new("own_faults_handed", |_| Ok(own_faults("handed")), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::OwnFaults, Degradation::Children])
        .forbidden_in_docker(),
    Case::new("own_faults_shared", |_| Ok(own_faults("shared")), |_| Drive::Pipes(Input::none()))
        .may_report(&[Degradation::OwnFaults])
        .forbidden_in_docker(),
    Case::new("own_faults_device", |_| Ok(own_faults("device")), |_| Drive::Pipes(Input::none()))
        .root_only()
        .needs_kernels_tracker()
        .needs(&["/dev/userfaultfd"]),
];

fn own_faults(way: &str) -> Program {
    Program::new(&[&program("own_faults"), "100", way])
}

fn page_server(way: &str, rounds: &str) -> Program {
    Program::new(&[&program("page_server"), way, rounds])
}
