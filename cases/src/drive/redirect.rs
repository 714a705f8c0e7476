//! Standard input and output are regular files, as a shell's `<` and `>` make them.

use std::fs::File;
use std::process::{Command, Stdio};

use super::stream::drain;
use super::{spawn, status_of, Seen};
use crate::failure::{Outcome, Tried};
use crate::room::Room;

/// Runs the program to its end. What it printed is the file `stdout` among its files.
pub fn perform(mut command: Command, room: &Room, input: &[u8]) -> Outcome<Seen> {
    room.put("stdin", input)?;
    room.put("stdout", b"")?;
    let path = |name: &str| room.work().join(name);
    command.stdin(File::open(path("stdin")).tried_on("open", &path("stdin"))?);
    command.stdout(File::create(path("stdout")).tried_on("open", &path("stdout"))?);
    command.stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let mut stderr = child.stderr.take().expect("a pipe was asked for");
    let complaints = drain(&mut stderr, "stderr", 0, 0)?;
    let mut seen = Seen { status: Some(status_of(child)?), ..Seen::default() };
    seen.streams.insert("stderr".into(), complaints);
    Ok(seen)
}
