//! Becomes another user, or enters what a Docker container would allow, and then runs a program:
//! `confine [--id N] [--docker] -- PROGRAM ARGS…`

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use outlast_cases::container;

fn main() -> ExitCode {
    match run() {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("confine: {error}");
            ExitCode::from(127)
        }
    }
}

fn run() -> io::Result<std::convert::Infallible> {
    let mut words = std::env::args().skip(1);
    let (mut id, mut docker) = (None, false);
    loop {
        match words.next().as_deref() {
            Some("--id") => id = words.next().and_then(|n| n.parse().ok()),
            Some("--docker") => docker = true,
            Some("--") => break,
            other => return Err(io::Error::other(format!("what is {other:?}?"))),
        }
    }
    let program = words.next().ok_or_else(|| io::Error::other("no program given"))?;
    let mut command = Command::new(program);
    command.args(words);
    if let Some(id) = id {
        // As root this drops the supplementary groups too.
        command.uid(id).gid(id);
    }
    if docker {
        container::enter()?;
    }
    Err(command.exec())
}
