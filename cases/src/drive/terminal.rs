//! A terminal of the program's own, and somebody who types and looks at the screen.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::pty::{grantpt, ioctl_tiocgptpeer, openpt, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};

use super::screen::Screen;
use super::{or_end_all, spawn, status_of, Seen};
use crate::diagnosis;
use crate::difference::Difference;
use crate::failure::{Failure, Outcome, Tried};
use crate::room::Room;
use crate::view::View;

/// Without any output for so long an unharmed program is taken to have drawn all it wants to draw.
const QUIET: Duration = Duration::from_millis(250);

/// One thing a person does.
#[derive(Clone, Debug)]
pub enum Step {
    Type(Vec<u8>),
    /// Waits until the screen contains the text.
    Await(String),
    /// Waits until the screen contains the first text, and somewhere after its last occurrence the second: an answer,
    /// and the prompt behind it. Who types before the prompt may be echoed by the kernel as well.
    AwaitBoth(String, String),
    /// Looks at the screen. In a harmed run: waits until it is what the unharmed run showed.
    Look(String),
    /// Changes the size of the window: rows, columns.
    Resize(u16, u16),
}

impl Step {
    pub fn key(keys: &str) -> Step {
        Step::Type(keys.as_bytes().to_vec())
    }

    /// Types a line and the enter key.
    pub fn line(text: &str) -> Step {
        Step::Type(format!("{text}\r").into_bytes())
    }

    pub fn wait(text: &str) -> Step {
        Step::Await(text.to_string())
    }

    pub fn answer(text: &str, prompt: &str) -> Step {
        Step::AwaitBoth(text.to_string(), prompt.to_string())
    }

    pub fn look(name: &str) -> Step {
        Step::Look(name.to_string())
    }
}

/// A conversation at a terminal.
#[derive(Clone, Debug)]
pub struct Script {
    /// Rows and columns at the start.
    pub size: (u16, u16),
    pub steps: Vec<Step>,
    /// Whether every byte printed is compared too; otherwise only screens are
    /// (screen programs may draw the same screen in several ways).
    pub exact: bool,
}

impl Script {
    pub fn new(steps: Vec<Step>) -> Script {
        Script { size: (24, 80), steps, exact: false }
    }

    /// Compares every byte printed, not only screens.
    pub fn exactly(mut self) -> Script {
        self.exact = true;
        self
    }
}

/// Runs the program on a new terminal and follows the script.
pub fn perform(mut command: Command, room: &Room, script: &Script, unharmed: Option<&View>) -> Outcome<Seen> {
    let (master, slave) = open_terminal(script.size)?;
    room.hand_over(&slave)?;
    let copy = |fd: &OwnedFd| fd.try_clone().tried("duplicate the terminal");
    command.stdin(copy(&slave)?).stdout(copy(&slave)?).stderr(slave);
    lead_session(&mut command);
    let child = spawn(command)?;
    let screen = Screen::new(script.size.0, script.size.1);
    let reading = File::from(copy(&master)?);
    thread::scope(|scope| {
        let follower = scope.spawn(|| screen.follow(reading));
        let mut seen = Seen::default();
        for (index, step) in script.steps.iter().enumerate() {
            diagnosis::note("step", format!("{index}: {step:?}"));
            or_end_all(take(step, &master, &screen, unharmed, &mut seen))?;
        }
        diagnosis::note("step", "all done, waiting for the end");
        seen.status = Some(status_of(child)?);
        follower.join().expect("the reader does not panic");
        seen.screens.insert("end".into(), screen.settle(Duration::ZERO));
        if script.exact {
            seen.streams.insert("terminal".into(), screen.raw());
        }
        Ok(seen)
    })
}

fn take(step: &Step, master: &OwnedFd, screen: &Screen, unharmed: Option<&View>, seen: &mut Seen) -> Outcome<()> {
    let ended = |expected: &str, last: String| {
        let difference = Difference::of_texts("screen when the terminal ended", expected, &last);
        difference.map_or_else(|| Failure::Told(last), Failure::Differs)
    };
    match step {
        Step::Type(keys) => {
            let mut master = File::from(master.try_clone().tried("duplicate the terminal")?);
            master.write_all(keys).tried("type")?;
        }
        Step::Await(text) => {
            screen.wait_until(|now| now.contains(text.as_str())).map_err(|last| ended(text, last))?;
        }
        Step::AwaitBoth(text, prompt) => {
            let answered = |now: &str| now.rfind(text.as_str()).is_some_and(|at| now[at..].contains(prompt.as_str()));
            screen.wait_until(answered).map_err(|last| ended(text, last))?;
        }
        Step::Look(name) => {
            let now = match unharmed {
                None => screen.settle(QUIET),
                Some(view) => {
                    let expected = view.screens.get(name).map_or("", String::as_str);
                    diagnosis::note("expected screen", format!("\n{expected}"));
                    screen.wait_until(|now| now == expected).map_err(|last| ended(expected, last))?
                }
            };
            seen.screens.insert(name.clone(), now);
        }
        Step::Resize(rows, columns) => {
            screen.resize(*rows, *columns);
            set_size(master, (*rows, *columns))?;
        }
    }
    Ok(())
}

/// A new terminal of that many rows and columns: the side of whoever serves it, and the side of whoever uses it.
pub fn open_terminal(size: (u16, u16)) -> Outcome<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).tried("open a terminal")?;
    grantpt(&master).tried("grant the terminal")?;
    unlockpt(&master).tried("unlock the terminal")?;
    let slave = ioctl_tiocgptpeer(&master, flags).tried("open the program's side of the terminal")?;
    set_size(&master, size)?;
    Ok((master, slave))
}

fn set_size(terminal: impl AsFd, (rows, columns): (u16, u16)) -> Outcome<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).tried("set the size of the terminal")
}

/// Makes the program the leader of a session whose controlling terminal is its standard input.
fn lead_session(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        // SAFETY: descriptor 0 was set up by the caller of fork and stays open until exec.
        let stdin = unsafe { rustix::fd::BorrowedFd::borrow_raw(0) };
        rustix::process::ioctl_tiocsctty(stdin)?;
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated.
    unsafe { command.pre_exec(lead) };
}
