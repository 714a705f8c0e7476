//! Programs with an io_uring of their own, which the engine serves: a counting server, a copier, files.

use crate::case::{Case, Program, Stage};
use crate::cases::{echo, tcp};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;

pub const CASES: &[Case] = &[
    // It does without where it has to.
    Case::new("own_ring", |_| Ok(Program::new(&[&program("own_ring"), "1500"])), |_| Drive::Pipes(Input::none())),
    Case::new("ring_server", |stage| server(stage, "ring"), tcp::clients).forbidden_in_docker(),
    Case::new("ring_server_multishot", |stage| server(stage, "multishot"), tcp::clients).forbidden_in_docker(),
    Case::new("ring_server_epoll", |stage| server(stage, "epoll"), tcp::clients).forbidden_in_docker(),
    Case::new("ring_server_eventfd", |stage| server(stage, "eventfd"), tcp::clients).forbidden_in_docker(),
    Case::new("ring_echo", |_| Ok(Program::new(&[&program("ring_echo")])), echo::pipe).forbidden_in_docker(),
    Case::new(
        "ring_echo_socket",
        |_| Ok(Program::new(&[&program("ring_echo")])),
        |_| Drive::Socket(echo::noise(1_000_000)),
    )
    .forbidden_in_docker(),
    Case::new("ring_files", |_| Ok(Program::new(&[&program("ring_files"), "150"])), |_| Drive::Pipes(Input::none()))
        .forbidden_in_docker(),
    Case::new("ring_edges", |_| Ok(Program::new(&[&program("ring_edges"), "150"])), |_| Drive::Pipes(Input::none()))
        .forbidden_in_docker(),
    Case::new(
        "ring_files_alone",
        |_| Ok(Program::new(&[&program("ring_files"), "400", "files"])),
        |_| Drive::Files(Vec::new()),
    )
    .forbidden_in_docker(),
    Case::new("ring_threads", |_| threads("ring"), |_| Drive::Pipes(Input::none())).forbidden_in_docker(),
    Case::new("ring_threads_epoll", |_| threads("epoll"), |_| Drive::Pipes(Input::none())).forbidden_in_docker(),
];

fn server(stage: &Stage, how: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("ring_server"), &stage.port.to_string(), how]))
}

fn threads(how: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("ring_threads"), "200", how]))
}
