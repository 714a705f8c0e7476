//! A numbered stream, read in every way there is; the program itself says where a number is missing or doubled.

use crate::case::{Case, Program, Stage};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("pipe_read", |_| checker("read"), pipe),
    Case::new("pipe_read_bytes", |_| checker("byte"), |_| Drive::Pipes(numbers(1_000, 700))),
    Case::new("pipe_readv", |_| checker("readv"), pipe),
    Case::new("pipe_poll", |_| checker("poll"), pipe),
    Case::new("pipe_select", |_| checker("select"), pipe),
    Case::new("pipe_epoll", |_| checker("epoll"), pipe),
    Case::new("pipe_fionread", |_| checker("ready"), pipe),
    Case::new("socket_recv", |_| checker("recv"), socket),
    Case::new("socket_peek", |_| checker("peek"), socket),
    Case::new("socket_epoll", |_| checker("epoll"), socket),
    Case::new("file_read", |_| checker("read"), |_| Drive::Files(numbers(200_000, 0).bytes)),
];

fn checker(how: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("checker"), how]))
}

fn pipe(_: &Stage) -> Drive {
    Drive::Pipes(numbers(40_000, 4_000))
}

fn socket(_: &Stage) -> Drive {
    Drive::Socket(numbers(40_000, 4_000))
}

/// `count` lines in pieces of up to `piece` bytes.
fn numbers(count: u32, piece: usize) -> Input {
    Input::pieces((0..count).flat_map(|i| format!("{i:08}\n").into_bytes()).collect(), piece)
}
