//! A terminal of a program's own: keys go in, and what it draws is read and dropped.

use crate::failure::{Failure, Outcome, Tried};
use rustix::fd::BorrowedFd;
use rustix::pty::{grantpt, ioctl_tiocgptpeer, openpt, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A screen on which nothing was drawn for so long is complete.
const STILL: Duration = Duration::from_millis(300);
/// How long a first screen may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The side of somebody who types and looks.
pub struct Terminal {
    keys: File,
    drawn: Arc<AtomicU64>,
}

impl Terminal {
    /// A terminal of 24 × 80, and the program's side of it.
    pub fn open() -> Outcome<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).tried("open a terminal")?;
        grantpt(&master).tried("grant the terminal")?;
        unlockpt(&master).tried("unlock the terminal")?;
        let slave = ioctl_tiocgptpeer(&master, flags).tried("open the program's side of the terminal")?;
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).tried("set the size of the terminal")?;
        let keys = File::from(master);
        let drawn = Arc::new(AtomicU64::new(0));
        let (mut screen, count) = (keys.try_clone().tried("duplicate the terminal")?, drawn.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Ends when nobody has the program's side open any more.
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                count.fetch_add(n as u64, Relaxed);
            }
        });
        Ok((Self { keys, drawn }, slave))
    }

    pub fn press(&mut self, key: char) -> Outcome<()> {
        self.type_in(key.encode_utf8(&mut [0; 4]))
    }

    /// Presses several keys at once.
    pub fn type_in(&mut self, text: &str) -> Outcome<()> {
        self.keys.write_all(text.as_bytes()).tried("press a key")
    }

    /// Waits until the first screen is complete.
    pub fn settle(&self) -> Outcome<()> {
        let until = Instant::now() + PATIENCE;
        let mut last = (0, Instant::now());
        while last.0 == 0 || last.1.elapsed() < STILL {
            if Instant::now() > until {
                return Err(Failure::TooLong("drawing the first screen".into(), PATIENCE.as_secs()));
            }
            if self.drawn() != last.0 {
                last = (self.drawn(), Instant::now());
            }
            std::thread::sleep(STILL / 20);
        }
        Ok(())
    }

    /// Bytes the program has drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn.load(Relaxed)
    }
}

/// Makes the program the leader of a session whose controlling terminal is its standard input.
pub fn lead_session(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        // SAFETY: descriptor 0 was set up before the fork and stays open until the exec.
        rustix::process::ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated.
    unsafe { command.pre_exec(lead) };
}
