//! xterm on a display of its own: what it draws, and what is typed into its window. It has no program inside: the other end of
//! its terminal is here.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use crate::case::{Case, Program, Stage, SPREAD};
use crate::diagnosis;
use crate::drive::{drain_both, open_terminal, or_end_all, spawn, status_of, Drive, Seen};
use crate::failure::{Failure, Outcome, Tried};
use crate::room::Room;

const XTERM: &str = "/usr/bin/xterm";
const XVFB: &str = "/usr/bin/Xvfb";
const XDOTOOL: &str = "/usr/bin/xdotool";
/// Descriptor of the terminal, as its command line names it.
const TERMINAL: i32 = 9;

pub const CASES: &[Case] = &[Case::new(
    "xterm",
    |stage| Ok(window(stage)),
    |stage| {
        let display = stage.port;
        Drive::Own(Box::new(move |command, room, seed| perform(command, room, display, seed)))
    },
)
.needs(&[XTERM, XVFB, XDOTOOL])
.pace(SPREAD)];

fn window(stage: &Stage) -> Program {
    let terminal = format!("-S0/{TERMINAL}");
    Program::new(&[XTERM, &terminal, "-ut", "-geometry", "80x24+0+0"]).with_env("DISPLAY", &format!(":{}", stage.port))
}

fn perform(mut command: Command, room: &Room, number: u16, seed: u64) -> Outcome<Seen> {
    let display = Display::open(number, room)?;
    let (master, slave) = open_terminal((24, 80))?;
    rustix::termios::tcgetattr(&slave)
        .and_then(|mut modes| {
            modes.make_raw();
            rustix::termios::tcsetattr(&slave, rustix::termios::OptionalActions::Now, &modes)
        })
        .tried("make the terminal raw")?;
    inherit(&mut command, master);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    thread::scope(|scope| {
        let draining = drain_both(scope, stdout, stderr, 0, seed);
        let mut seen = Seen::default();
        let mut talk = Talk { terminal: File::from(slave), taken: Vec::new() };
        or_end_all(talk.all(&display))?;
        seen.streams.insert("terminal".into(), talk.taken);
        seen.streams.insert("picture".into(), or_end_all(display.picture())?);
        // The end of the terminal is the end of xterm.
        drop(talk.terminal);
        seen.status = Some(status_of(child)?);
        draining.into_streams(&mut seen.streams)?;
        Ok(seen)
    })
}

/// Gives the program the terminal's side that it serves.
fn inherit(command: &mut Command, master: OwnedFd) {
    let place = move || {
        // SAFETY: the number is nobody else's in the child; dup2 clears the flag that would close it at exec.
        let mut target = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(TERMINAL) });
        if master.as_raw_fd() == TERMINAL {
            return Ok(rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::empty())?);
        }
        Ok(rustix::io::dup2(&master, &mut target)?)
    };
    // SAFETY: between fork and exec only one system call is made; nothing is allocated.
    unsafe { command.pre_exec(place) };
}

/// Somebody who writes to the terminal and reads what xterm answers or was typed.
struct Talk {
    terminal: File,
    taken: Vec<u8>,
}

impl Talk {
    fn all(&mut self, display: &Display) -> Outcome<()> {
        // The first thing it says is the number of its window.
        self.take_until(b'\n')?;
        self.taken.clear();
        for round in 0..60 {
            diagnosis::note("round", round.to_string());
            let colour = 31 + round % 7;
            self.write(&format!("\x1b[{colour}mround {round}\x1b[m of many\r\n\x1b]2;title {round}\x07"))?;
            if round % 10 == 4 {
                self.write("\x1b[5;12r\x1b[5;1H\x1b[3L\x1b[7minserted\x1b[m\x1b[r\x1b[24;1H\r\n")?;
            }
            // Where is the cursor? The answer comes when all of this was drawn.
            self.write("\x1b[6n")?;
            self.take_until(b'R')?;
            if round % 6 == 5 {
                let word = format!("word{round};");
                display.type_in(&word)?;
                self.take_until(b';')?;
                self.write(&word)?;
            }
        }
        self.write("\x1b[21t\x1b[6n")?;
        self.take_until(b'R')
    }

    fn write(&mut self, text: &str) -> Outcome<()> {
        self.terminal.write_all(text.as_bytes()).tried("write to the terminal")
    }

    fn take_until(&mut self, last: u8) -> Outcome<()> {
        loop {
            let mut byte = [0];
            self.terminal.read_exact(&mut byte).tried("read from the terminal")?;
            self.taken.push(byte[0]);
            if byte[0] == last {
                return Ok(());
            }
        }
    }
}

/// A display without a screen; ends with the value.
struct Display {
    server: Child,
    number: u16,
    frame: PathBuf,
}

impl Display {
    fn open(number: u16, room: &Room) -> Outcome<Display> {
        let folder = room.state();
        let name = format!(":{number}");
        let mut server = Command::new(XVFB);
        server.args([&name, "-ac", "-nolisten", "tcp", "-noreset", "-screen", "0", "640x480x8", "-fbdir"]).arg(&folder);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let display = Display { server: spawn(server)?, number, frame: folder.join("Xvfb_screen0") };
        let socket = format!("/tmp/.X11-unix/X{number}");
        for _ in 0..15_000 {
            if UnixStream::connect(Path::new(&socket)).is_ok() {
                return Ok(display);
            }
            sleep(Duration::from_millis(2));
        }
        Err(Failure::Told(format!("nobody serves display {name}")))
    }

    /// Presses keys.
    fn type_in(&self, text: &str) -> Outcome<()> {
        let mut hand = Command::new(XDOTOOL);
        hand.env("DISPLAY", format!(":{}", self.number)).args([
            "mousemove",
            "100",
            "100",
            "type",
            "--delay",
            "0",
            text,
        ]);
        let said = hand.output().tried("run xdotool")?;
        if said.status.success() {
            return Ok(());
        }
        Err(Failure::Told(format!("xdotool: {}", String::from_utf8_lossy(&said.stderr))))
    }

    /// What is on the screen once it does not change any more.
    fn picture(&self) -> Outcome<Vec<u8>> {
        let look = || fs::read(&self.frame).tried_on("read", &self.frame);
        let mut last = look()?;
        let mut quiet = 0;
        while quiet < 10 {
            sleep(Duration::from_millis(20));
            let now = look()?;
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
        Ok(last)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // SIGTERM, so that it removes its socket and lock.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.server),
            rustix::process::Signal::TERM,
        );
        let _ = self.server.wait();
    }
}
