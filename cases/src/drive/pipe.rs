//! Standard input, output and error are pipes.

use std::process::{Command, Stdio};
use std::thread;

use super::stream::{drain, feed, Input};
use super::{spawn, status_of, Seen};
use crate::failure::Outcome;

/// Feeds and reads at the same time until the program ends.
pub fn perform(mut command: Command, input: &Input, seed: u64) -> Outcome<Seen> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let mut stdout = child.stdout.take().expect("a pipe was asked for");
    let mut stderr = child.stderr.take().expect("a pipe was asked for");
    thread::scope(|scope| {
        // The closure owns the pipe: its end is the program's end of file.
        let feeder = scope.spawn(move || feed(&mut stdin, input, seed));
        let out = scope.spawn(move || drain(&mut stdout, "stdout", input.sip, seed ^ 1));
        let err = scope.spawn(move || drain(&mut stderr, "stderr", 0, seed ^ 2));
        let status = status_of(child)?;
        let mut seen = Seen { status: Some(status), ..Seen::default() };
        seen.streams.insert("stdout".into(), out.join().expect("the reader does not panic")?);
        seen.streams.insert("stderr".into(), err.join().expect("the reader does not panic")?);
        feeder.join().expect("the feeder does not panic")?;
        Ok(seen)
    })
}
