//! At a terminal, the shell sees the job it would see without outlast.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use support::{until, Home};

/// A shell with job control at a terminal of its own.
struct Terminal {
    master: File,
    seen: Arc<Mutex<String>>,
    shell: Child,
}

impl Terminal {
    fn new(home: &Home, script: &str) -> Self {
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: the two descriptors are ours to fill; no name, settings or size are given.
        let r = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
        assert_eq!(r, 0, "openpty");
        // SAFETY: both were just opened, and nothing else owns them.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-m", "-c", script]).env("OUTLAST_STATE_DIR", home.state());
        let copy = || slave.try_clone().unwrap();
        shell.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: the closure makes system calls only.
        unsafe {
            shell.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let shell = shell.spawn().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut reader, shared) = (master.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            // A terminal without a writer is an error to read from.
            while let Ok(n) = reader.read(&mut bytes) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        Self { master, seen, shell }
    }

    fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows it after what was waited for before.
    fn await_text(&self, text: &str) {
        until(&format!("{text:?} on the screen, which shows {:?}", self.seen.lock().unwrap()), || {
            let mut seen = self.seen.lock().unwrap();
            let found = seen.find(text).map(|at| at + text.len());
            found.map(|end| seen.drain(..end).count()).is_some()
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_job_stops_continues_and_ends() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{outlast}' run --name job -- cat; echo stopped $?; fg >/dev/null; echo ended $?");
    let mut terminal = Terminal::new(&home, &script);
    home.await_protected("job");
    terminal.type_in("first\n");
    terminal.await_text("first\r\nfirst\r\n");
    terminal.type_in("\x1a");
    // 128 + SIGTSTP
    terminal.await_text("stopped 148");
    terminal.type_in("second\n");
    terminal.await_text("second\r\nsecond\r\n");
    terminal.type_in("\x04");
    terminal.await_text("ended 0");
}

#[test]
fn keys_that_signal_reach_the_program_once() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let program = "trap 'echo caught' INT; echo ready; while :; do read x && echo got $x; done";
    let script = format!("'{outlast}' run --name keys -- sh -c \"{}\"; echo ended $?", program.replace('$', "\\$"));
    let mut terminal = Terminal::new(&home, &script);
    terminal.await_text("ready");
    terminal.type_in("\x03");
    terminal.await_text("caught");
    terminal.type_in("word\n");
    terminal.await_text("got word");
    assert!(!terminal.seen.lock().unwrap().contains("caught"), "it was interrupted twice");
    terminal.type_in("\x1c");
    // 128 + SIGQUIT
    terminal.await_text("ended 131");
}

#[test]
fn a_program_at_a_terminal_is_recovered_in_the_foreground() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{outlast}' run --name front -- cat; echo ended $?");
    let mut terminal = Terminal::new(&home, &script);
    terminal.type_in("one\n");
    terminal.await_text("one\r\none\r\n");
    for round in 1..=5 {
        support::kill(&home.await_protected("front")["pid"], libc::SIGKILL);
        home.await_event("front", "recovered", round);
        terminal.type_in(&format!("again {round}\n"));
        terminal.await_text(&format!("again {round}\r\nagain {round}\r\n"));
    }
    terminal.type_in("\x04");
    terminal.await_text("ended 0");
}
