//! An X server without a screen, and a hand at its mouse.

use crate::failure::{Failure, Outcome, Tried};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub const XVFB: &str = "/usr/bin/Xvfb";
pub const XDOTOOL: &str = "/usr/bin/xdotool";

/// Ends with the value.
pub struct Display {
    server: Child,
    hand: Option<Child>,
    /// As `DISPLAY` has it.
    pub name: String,
}

impl Display {
    pub fn open() -> Outcome<Self> {
        for program in [XVFB, XDOTOOL] {
            if !Path::new(program).exists() {
                return Err(Failure::NotHere(format!("{program} is not installed; run `make install-deps`")));
            }
        }
        // The server tells the number that it found free, once it serves.
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC).tried("make a pipe")?;
        rustix::io::fcntl_setfd(&tell, rustix::io::FdFlags::empty()).tried("hand over a pipe")?;
        let server = Command::new(XVFB)
            .args(["-displayfd", &tell.as_raw_fd().to_string(), "-ac", "-nolisten", "tcp", "-noreset"])
            .args(["-screen", "0", "1024x768x24"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .tried_on(XVFB)?;
        drop(tell);
        let mut display = Self { server, hand: None, name: String::new() };
        let mut number = String::new();
        BufReader::new(File::from(told)).read_line(&mut number).tried("hear from the X server")?;
        display.name = format!(":{}", number.trim());
        if number.trim().is_empty() {
            return Err(Failure::Unreadable("Xvfb".into(), number));
        }
        let hand = Command::new(XDOTOOL)
            .arg("-")
            .env("DISPLAY", &display.name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .tried_on(XDOTOOL)?;
        display.hand = Some(hand);
        Ok(display)
    }

    /// One line of xdotool's commands.
    pub fn hand(&mut self, line: &str) -> Outcome<()> {
        let input = self.hand.as_mut().and_then(|hand| hand.stdin.as_mut());
        let input = input.ok_or_else(|| Failure::NotHere("xdotool does not listen".into()))?;
        writeln!(input, "{line}").and_then(|()| input.flush()).tried("move the mouse")
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(hand) = &mut self.hand {
            // Its input ends, and so does it.
            drop(hand.stdin.take());
            let _ = hand.wait();
        }
        // SIGTERM, so that it removes its socket and lock.
        let pid = rustix::process::Pid::from_child(&self.server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.server.wait();
    }
}
