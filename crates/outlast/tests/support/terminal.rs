//! A terminal of a test's own.

use super::PATIENCE;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A program in a session whose terminal this is.
pub struct Terminal {
    master: File,
    program: Child,
    shown: Arc<Mutex<String>>,
    /// How much of it was waited for.
    awaited: usize,
}

impl Terminal {
    pub fn start(mut command: Command) -> Self {
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: the two descriptors are ours to fill; no name, settings or size are given.
        let r = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
        assert_eq!(r, 0, "openpty");
        // What other tests begin meanwhile must not have it open: it would not end before that does.
        // SAFETY: plain system calls.
        let _ = [master, slave].map(|fd| unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) });
        // SAFETY: both were just opened, and nothing else owns them.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let copy = || slave.try_clone().unwrap();
        command.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let program = command.spawn().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, shared) = (master.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            // A terminal without a writer is an error to read from.
            while let Ok(n) = reader.read(&mut bytes) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        Self { master, program, shown, awaited: 0 }
    }

    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// All that it has shown.
    pub fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// What it has shown after what was waited for.
    pub fn rest(&self) -> String {
        self.shown.lock().unwrap()[self.awaited..].into()
    }

    /// Waits until it shows the text after what was waited for before.
    pub fn await_text(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.rest().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{text:?} is not on the screen, which shows {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.awaited += self.rest().find(text).unwrap_or(0) + text.len();
    }

    /// The process group that keys reach.
    pub fn foreground(&self) -> i32 {
        // SAFETY: asks only.
        unsafe { libc::tcgetpgrp(self.master.as_raw_fd()) }
    }

    /// Waits until the program has ended.
    pub fn end(&mut self) -> ExitStatus {
        self.program.wait().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
