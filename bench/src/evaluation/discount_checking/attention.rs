//! When a program asks for the next key: it has run since the last one, and sleeps.

use crate::failure::{Failure, Outcome, Tried};
use rustix::process::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A program whose first thread is looked at from outside; nothing is attached to it.
pub struct Attention {
    status: File,
    path: PathBuf,
}

/// What the thread was doing at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    asleep: bool,
    /// How often it has given up or lost its processor.
    switches: u64,
}

/// How long between two looks: a look itself takes some 15 µs.
const PULSE: Duration = Duration::from_micros(10);

impl Attention {
    pub fn to(pid: Pid) -> Outcome<Self> {
        let path = PathBuf::from(format!("/proc/{}/status", pid.as_raw_nonzero()));
        Ok(Self { status: File::open(&path).tried_on(&path)?, path })
    }

    /// # Errors
    /// The process is gone.
    pub fn look(&self) -> Outcome<Look> {
        let mut text = [0; 4096];
        let len = self.status.read_at(&mut text, 0).tried_on(&self.path)?;
        let text = String::from_utf8_lossy(&text[..len]);
        parse(&text).ok_or_else(|| Failure::Unreadable(self.path.display().to_string(), text.into_owned()))
    }

    /// The moment from which on it slept for `still`, having run since `before`.
    pub fn asked(&self, before: Look, still: Duration, patience: Duration) -> Outcome<Instant> {
        let began = Instant::now();
        let mut since: Option<(Look, Instant)> = None;
        loop {
            let (look, now) = (self.look()?, Instant::now());
            since = match since {
                _ if !look.asleep || look.switches == before.switches => None,
                Some((last, at)) if last == look => {
                    if now - at >= still {
                        return Ok(at);
                    }
                    Some((last, at))
                }
                _ => Some((look, now)),
            };
            if now - began > patience {
                return Err(Failure::TooLong("answering a key".into(), patience.as_secs()));
            }
            std::thread::sleep(PULSE);
        }
    }
}

/// Sleeps of this thread end when they should, not up to 50 µs later.
pub fn sleep_precisely() {
    // SAFETY: changes a number in the kernel, of this thread; if it cannot, sleeps stay as they are.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

fn parse(status: &str) -> Option<Look> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':')?.split_whitespace().next()
    };
    let switches = |name| field(name)?.parse::<u64>().ok();
    Some(Look {
        asleep: field("State")? == "S",
        switches: switches("voluntary_ctxt_switches")? + switches("nonvoluntary_ctxt_switches")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_status_is_read() {
        let text = "Name:\tS\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(parse(text), Some(Look { asleep: true, switches: 42 }));
        assert_eq!(parse(&text.replace("S (sleeping)", "R (running)")).map(|look| look.asleep), Some(false));
        assert_eq!(parse("State:\tZ (zombie)\n"), None);
    }

    #[test]
    fn a_program_asks_after_it_has_answered() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let attention = Attention::to(Pid::from_child(&cat)).unwrap();
        let (mut input, mut output) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        for _ in 0..20 {
            let mut byte = [0];
            input.write_all(b"x").unwrap();
            output.read_exact(&mut byte).unwrap();
            let asleep = || attention.look().unwrap().asleep;
            while !asleep() {}
            let before = attention.look().unwrap();
            let pressed = Instant::now();
            input.write_all(b"y").unwrap();
            let asked = attention.asked(before, Duration::from_millis(2), Duration::from_secs(60)).unwrap();
            assert!(asked >= pressed);
            // It asks only when it has answered: the answer is there without waiting.
            rustix::io::ioctl_fionbio(&output, true).unwrap();
            output.read_exact(&mut byte).unwrap();
            rustix::io::ioctl_fionbio(&output, false).unwrap();
            assert_eq!(byte, *b"y");
        }
        drop(input);
        assert!(cat.wait().unwrap().success());
    }
}
