//! Standard input, output and error are pipes.

use std::process::{Command, Stdio};
use std::thread;

use super::stream::{drain_both, feed, Input};
use super::{spawn, status_of, Seen};
use crate::failure::Outcome;

/// Feeds and reads at the same time until the program ends.
pub fn perform(mut command: Command, input: &Input, seed: u64) -> Outcome<Seen> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    thread::scope(|scope| {
        // The closure owns the pipe: its end is the program's end of file.
        let feeder = scope.spawn(move || feed(&mut stdin, input, seed));
        let draining = drain_both(scope, stdout, stderr, input.sip, seed);
        let status = status_of(child)?;
        let mut seen = Seen { status: Some(status), ..Seen::default() };
        draining.into_streams(&mut seen.streams)?;
        feeder.join().expect("the feeder does not panic")?;
        Ok(seen)
    })
}
