//! Tight loops of numbered writes, nine bytes each: into pipes, sockets, terminals and files.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input, Script};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("pipe_counter", |_| Ok(Program::new(&[&program("counter"), "20000"])), slow_pipe),
    Case::new("pipe_counter_static", |_| Ok(Program::new(&[&program("counter-static"), "20000"])), slow_pipe),
    Case::new("pipe_writev", |_| Ok(Program::new(&[&program("counter"), "20000", "writev"])), slow_pipe),
    Case::new("socket_counter", |_| Ok(Program::new(&[&program("counter"), "20000"])), slow_socket),
    Case::new("socket_send", |_| Ok(Program::new(&[&program("counter"), "20000", "send"])), slow_socket),
    Case::new("socket_sendmsg", |_| Ok(Program::new(&[&program("counter"), "20000", "sendmsg"])), slow_socket),
    Case::new("file_counter", |_| Ok(Program::new(&[&program("counter"), "20000"])), |_| Drive::Files(Vec::new())),
    Case::new(
        "terminal_counter",
        |_| Ok(Program::new(&[&program("counter"), "5000"])),
        |_| Drive::Terminal(Script::new(Vec::new()).exactly()),
    ),
];

/// Reads slowly, so that the program also blocks in the middle of a write.
fn slow_pipe(_: &crate::case::Stage) -> Drive {
    Drive::Pipes(Input::none().sipping(3000))
}

fn slow_socket(_: &crate::case::Stage) -> Drive {
    Drive::Socket(Input::none().sipping(3000))
}
