//! A pipe with so much room that nobody has to read it while writes to it are measured.

use crate::failure::{Outcome, Tried};
use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags};
use std::os::fd::OwnedFd;
use std::process::Stdio;

/// What an ordinary user may have; as many bytes fit, also when they are written one by one.
pub const ROOM: usize = 1 << 20;

/// Its read end, to be held until the program has ended, and a standard stream that writes to it.
pub fn roomy() -> Outcome<(OwnedFd, Stdio)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).tried("make a pipe")?;
    fcntl_setpipe_size(&write, ROOM).tried("give a pipe a megabyte of room")?;
    Ok((read, write.into()))
}
