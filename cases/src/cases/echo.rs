//! What goes in comes out: `echo` and `cat` between pipes, sockets and files.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program, Stage};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("pipe_echo", |_| Ok(Program::new(&[&program("echo")])), pipe),
    Case::new("pipe_echo_static", |_| Ok(Program::new(&[&program("echo-static")])), pipe),
    Case::new("socket_echo", |_| Ok(Program::new(&[&program("echo")])), |_| Drive::Socket(noise(1_000_000))),
    Case::new("pipe_inputs", |_| Ok(Program::new(&[&program("inputs")])), |_| Drive::Pipes(noise(300_000))),
    Case::new("socket_inputs", |_| Ok(Program::new(&[&program("inputs")])), |_| Drive::Socket(noise(300_000))),
    Case::new("async_input", |_| Ok(Program::new(&[&program("async_input")])), |_| Drive::Pipes(noise(100_000))),
    Case::new(
        "async_input_realtime",
        |_| Ok(Program::new(&[&program("async_input"), "realtime"])),
        |_| Drive::Pipes(noise(100_000)),
    )
    // How many were waiting nobody knows; that there is something to be read the program is told.
    .may_report(&[Degradation::SignalLost]),
    Case::new(
        "async_input_ioctl",
        |_| Ok(Program::new(&[&program("async_input"), "ioctl"])),
        |_| Drive::Socket(noise(100_000)),
    ),
    Case::new(
        "async_input_group",
        |_| Ok(Program::new(&[&program("async_input"), "group"])),
        |_| Drive::Socket(noise(100_000)),
    ),
    Case::new("cat", |_| Ok(Program::new(&["/bin/cat"])), pipe).needs(&["/bin/cat"]),
    Case::new("cat_files", |_| Ok(Program::new(&["/bin/cat"])), |_| Drive::Files(noise(8_000_000).bytes))
        .needs(&["/bin/cat"]),
];

pub fn pipe(_: &Stage) -> Drive {
    Drive::Pipes(noise(2_000_000))
}

/// Pseudo-random bytes: no stretch of them is like another, so nothing can be lost or repeated unseen.
pub fn noise(len: usize) -> Input {
    let mut random = fastrand::Rng::with_seed(1);
    Input::pieces(std::iter::repeat_with(|| random.u8(..)).take(len).collect(), 5_000).sipping(9_000)
}
