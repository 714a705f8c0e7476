//! Standard input and output are one end of a Unix stream socket pair.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;

use super::stream::{drain_both, feed, Input};
use super::{spawn, status_of, Seen};
use crate::failure::{Outcome, Tried};

/// Feeds and reads at the same time until the program ends.
pub fn perform(mut command: Command, input: &Input, seed: u64) -> Outcome<Seen> {
    let (ours, theirs) = UnixStream::pair().tried("make a socket pair")?;
    let again = theirs.try_clone().tried("duplicate a socket")?;
    command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(again)).stderr(Stdio::piped());
    // `spawn` takes the command, and with it our copies of the program's end.
    let mut child = spawn(command)?;
    let stderr = child.stderr.take().expect("a pipe was asked for");
    let reading = ours.try_clone().tried("duplicate a socket")?;
    thread::scope(|scope| {
        let feeder = scope.spawn(move || -> Outcome<()> {
            let mut writing = ours;
            feed(&mut writing, input, seed)?;
            // The program may be gone already.
            let _ = writing.shutdown(Shutdown::Write);
            Ok(())
        });
        let draining = drain_both(scope, reading, stderr, input.sip, seed);
        let status = status_of(child)?;
        let mut seen = Seen { status: Some(status), ..Seen::default() };
        draining.into_streams(&mut seen.streams)?;
        feeder.join().expect("the feeder does not panic")?;
        Ok(seen)
    })
}
