//! Standard input and output are one end of a Unix stream socket pair.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;

use super::stream::{drain, feed, Input};
use super::{spawn, status_of, Seen};
use crate::failure::{Outcome, Tried};

/// Feeds and reads at the same time until the program ends.
pub fn perform(mut command: Command, input: &Input, seed: u64) -> Outcome<Seen> {
    let (ours, theirs) = UnixStream::pair().tried("make a socket pair")?;
    let again = theirs.try_clone().tried("duplicate a socket")?;
    command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(again)).stderr(Stdio::piped());
    // `spawn` takes the command, and with it our copies of the program's end.
    let mut child = spawn(command)?;
    let mut stderr = child.stderr.take().expect("a pipe was asked for");
    let mut reading = ours.try_clone().tried("duplicate a socket")?;
    thread::scope(|scope| {
        let feeder = scope.spawn(move || -> Outcome<()> {
            let mut writing = ours;
            feed(&mut writing, input, seed)?;
            // The program may be gone already.
            let _ = writing.shutdown(Shutdown::Write);
            Ok(())
        });
        let out = scope.spawn(move || drain(&mut reading, "stdout", input.sip, seed ^ 1));
        let err = scope.spawn(move || drain(&mut stderr, "stderr", 0, seed ^ 2));
        let status = status_of(child)?;
        let mut seen = Seen { status: Some(status), ..Seen::default() };
        seen.streams.insert("stdout".into(), out.join().expect("the reader does not panic")?);
        seen.streams.insert("stderr".into(), err.join().expect("the reader does not panic")?);
        feeder.join().expect("the feeder does not panic")?;
        Ok(seen)
    })
}
