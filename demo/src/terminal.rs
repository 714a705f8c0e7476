//! A terminal of the program's own: keys go in, and what it shows is kept, and printed as it comes if that is wanted.

use crate::failure::{Failure, Outcome, Tried};
use rustix::fd::BorrowedFd;
use rustix::pty::{grantpt, ioctl_tiocgptpeer, openpt, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long anything may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the program has shown so far.
#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    ended: bool,
}

impl Shown {
    /// Whether what comes after the first `from` bytes ends with `text`.
    fn ends_with(&self, from: usize, text: &str) -> bool {
        self.bytes.get(from..).is_some_and(|rest| rest.ends_with(text.as_bytes()))
    }
}

/// See the module.
pub struct Terminal {
    keys: File,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Terminal {
    /// Starts the command on a new terminal. `aloud`: what it shows is printed, too.
    pub fn start(mut command: Command, aloud: bool) -> Outcome<(Self, Child)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).tried("open a terminal")?;
        grantpt(&master).tried("grant the terminal")?;
        unlockpt(&master).tried("unlock the terminal")?;
        let slave = ioctl_tiocgptpeer(&master, flags).tried("open the program's side of the terminal")?;
        let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).tried("set the size of the terminal")?;
        let copy = || slave.try_clone().tried("duplicate the terminal");
        command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        lead_session(&mut command);
        let child = command.spawn().tried("start the program")?;
        let keys = File::from(master);
        let shown = Arc::<(Mutex<Shown>, Condvar)>::default();
        let (screen, kept) = (keys.try_clone().tried("duplicate the terminal")?, shown.clone());
        std::thread::spawn(move || follow(screen, &kept, aloud));
        Ok((Self { keys, shown }, child))
    }

    pub fn press(&mut self, keys: &str) -> Outcome<()> {
        self.keys.write_all(keys.as_bytes()).tried("press keys")
    }

    /// How much was shown so far.
    pub fn len(&self) -> usize {
        self.lock().bytes.len()
    }

    /// Whether what was shown from `from` on ends with `text`.
    pub fn ends_with(&self, from: usize, text: &str) -> bool {
        self.lock().ends_with(from, text)
    }

    /// Waits until what is shown from `from` on ends with `text`.
    pub fn await_end(&self, from: usize, text: &'static str) -> Outcome<()> {
        let waiting = |shown: &mut Shown| !shown.ends_with(from, text) && !shown.ended;
        let (shown, _) =
            self.shown.1.wait_timeout_while(self.lock(), PATIENCE, waiting).unwrap_or_else(|e| e.into_inner());
        match shown.ends_with(from, text) {
            true => Ok(()),
            false => Err(Failure::Silent(text, PATIENCE.as_secs(), last_line(&shown.bytes))),
        }
    }

    /// Waits until nobody has the program's side open any more; everything that was shown.
    pub fn transcript(self) -> Vec<u8> {
        let waiting = |shown: &mut Shown| !shown.ended;
        let (shown, _) =
            self.shown.1.wait_timeout_while(self.lock(), PATIENCE, waiting).unwrap_or_else(|e| e.into_inner());
        shown.bytes.clone()
    }

    /// What stands in the line that is not complete.
    pub fn last_line(&self) -> String {
        last_line(&self.lock().bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        // A reader that panicked left what it had read, which stays true.
        self.shown.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn last_line(bytes: &[u8]) -> String {
    let line = bytes.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).trim_start_matches('\r').into()
}

fn follow(mut screen: File, kept: &(Mutex<Shown>, Condvar), aloud: bool) {
    let mut bytes = [0; 4096];
    // Ends when nobody has the program's side open any more.
    while let Ok(n @ 1..) = screen.read(&mut bytes) {
        // Printed before it is kept: whoever waits for it may print the next line.
        if aloud {
            let mut out = std::io::stdout().lock();
            // Nobody looking is no reason to fail.
            let _ = out.write_all(&bytes[..n]).and_then(|()| out.flush());
        }
        let mut shown = kept.0.lock().unwrap_or_else(|e| e.into_inner());
        shown.bytes.extend_from_slice(&bytes[..n]);
        kept.1.notify_all();
    }
    kept.0.lock().unwrap_or_else(|e| e.into_inner()).ended = true;
    kept.1.notify_all();
}

/// Makes the program the leader of a session whose controlling terminal is its standard input.
fn lead_session(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        // SAFETY: descriptor 0 was set up before the fork and stays open until the exec.
        rustix::process::ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated.
    unsafe { command.pre_exec(lead) };
}
