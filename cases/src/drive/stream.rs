//! Feeding and reading byte streams in pieces of seeded random sizes.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::diagnosis;
use crate::failure::{Outcome, Tried};

/// Bytes to feed to a program, and how.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub bytes: Vec<u8>,
    /// Largest piece written at once; 0 stands for everything.
    pub piece: usize,
    /// Longest pause after one in eight pieces.
    pub pause: Duration,
    /// Largest piece read at once; 0 stands for 64 KiB. Small pieces keep the pipe full, so that the program blocks.
    pub sip: usize,
}

impl Input {
    /// No input at all: end of file at once.
    pub fn none() -> Input {
        Input::default()
    }

    /// `bytes` in pieces of up to `piece` with pauses of up to 1 ms.
    pub fn pieces(bytes: Vec<u8>, piece: usize) -> Input {
        Input { bytes, piece, pause: Duration::from_millis(1), sip: 0 }
    }

    /// Reads the program's output in pieces of up to `sip`.
    pub fn sipping(mut self, sip: usize) -> Input {
        self.sip = sip;
        self
    }
}

/// Writes all of `input`; a reader that is gone ends it early and is no error (its status will tell).
pub fn feed(to: &mut impl Write, input: &Input, seed: u64) -> Outcome<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut rest = &input.bytes[..];
    while !rest.is_empty() {
        let most = if input.piece == 0 { rest.len() } else { input.piece.min(rest.len()) };
        let (piece, next) = rest.split_at(random.usize(1..=most));
        match to.write_all(piece) {
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => return Ok(()),
            result => result.tried("feed the program")?,
        }
        rest = next;
        diagnosis::note("fed", format!("{} of {} bytes", input.bytes.len() - rest.len(), input.bytes.len()));
        if !input.pause.is_zero() && random.u8(..8) == 0 {
            thread::sleep(Duration::from_micros(random.u64(..=input.pause.as_micros() as u64)));
        }
    }
    Ok(())
}

/// Reads a program's output and complaints at the same time, to their ends.
pub fn drain_both<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut out: impl Read + Send + 'scope,
    mut err: impl Read + Send + 'scope,
    sip: usize,
    seed: u64,
) -> Draining<'scope> {
    Draining {
        out: scope.spawn(move || drain(&mut out, "stdout", sip, seed ^ 1)),
        err: scope.spawn(move || drain(&mut err, "stderr", 0, seed ^ 2)),
    }
}

/// Two streams that are being read.
pub struct Draining<'scope> {
    out: ScopedJoinHandle<'scope, Outcome<Vec<u8>>>,
    err: ScopedJoinHandle<'scope, Outcome<Vec<u8>>>,
}

impl Draining<'_> {
    /// Waits for both ends.
    pub fn into_streams(self, streams: &mut BTreeMap<String, Vec<u8>>) -> Outcome<()> {
        streams.insert("stdout".into(), self.out.join().expect("the reader does not panic")?);
        streams.insert("stderr".into(), self.err.join().expect("the reader does not panic")?);
        Ok(())
    }
}

/// Reads to the end of file. `name` is the stream's name in the diagnosis.
pub fn drain(from: &mut impl Read, name: &str, sip: usize, seed: u64) -> Outcome<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut taken = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let most = if sip == 0 { buffer.len() } else { random.usize(1..=sip) };
        match from.read(&mut buffer[..most]) {
            Ok(0) => return Ok(taken),
            Ok(n) => taken.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(taken),
            // A terminal whose last user is gone.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => return Ok(taken),
            Err(e) => return Err(e).tried(format!("read {name}")),
        }
        let tail = &taken[taken.len().saturating_sub(60)..];
        diagnosis::note(name, format!("{} bytes, last … {}", taken.len(), tail.escape_ascii()));
    }
}
