//! The programs of Table 2, or the nearest that Debian has: how each is started, in a place of its own.

use super::display::Display;
use super::sessions::{self, Act};
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::running::Running;
use crate::terminal::{lead_session, Terminal};
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that waits for a person.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Nvi,
    Magic,
    Sc,
    Hack,
}

/// Where magic's program is: `/usr/bin/magic` is a script that executes it.
const MAGIC: &str = "/usr/lib/x86_64-linux-gnu/magic/tcl/magicexec";
const HACK: &str = "/usr/games/hack";

/// A program that runs, with all that a person has of it.
pub struct Stage {
    pub running: Running,
    pub terminal: Terminal,
    pub display: Option<Display>,
}

impl Program {
    /// In the order of the paper's table.
    pub const ALL: [Self; 4] = [Self::Nvi, Self::Magic, Self::Sc, Self::Hack];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nvi => "nvi",
            Self::Magic => "magic",
            Self::Sc => "sc",
            Self::Hack => "hack",
        }
    }

    pub fn session(self) -> &'static str {
        match self {
            Self::Nvi => "a text is written, corrected and saved",
            Self::Magic => "inverters are laid out: two corners with the mouse and a layer, again and again",
            Self::Sc => "a budget is made: labels, numbers, products and sums",
            Self::Hack => "a walk through the first level of the dungeon",
        }
    }

    /// How long the person thinks before each key or command, as in the paper.
    pub fn delay(self) -> Duration {
        Duration::from_millis(if self == Self::Magic { 1000 } else { 100 })
    }

    /// How long it must sleep to be taken as asking: the mouse reaches it in several messages, one after the other.
    pub fn still(self) -> Duration {
        Duration::from_millis(if self == Self::Magic { 50 } else { 3 })
    }

    /// Keys or commands of a session.
    pub fn length(self, quick: bool) -> usize {
        let [whole, short] = match self {
            Self::Nvi => [600, 60],
            Self::Magic => [60, 8],
            Self::Sc => [400, 60],
            Self::Hack => [165, 60],
        };
        if quick {
            short
        } else {
            whole
        }
    }

    pub fn acts(self, seed: u64, count: usize) -> Vec<Act> {
        match self {
            Self::Nvi => sessions::writing(seed, count),
            Self::Magic => sessions::layout(seed, count),
            Self::Sc => sessions::budget(seed, count),
            Self::Hack => sessions::dungeon(seed, count),
        }
    }

    /// Done before the session begins.
    pub fn opening(self) -> Vec<Act> {
        match self {
            Self::Magic => vec![Act::Line(sessions::VIEW.into())],
            _ => Vec::new(),
        }
    }

    /// Done at the end, so that nothing is left behind.
    pub fn leaving(self) -> &'static str {
        match self {
            Self::Nvi => "\u{1b}:q!\r",
            Self::Magic => "quit -noprompt\r",
            Self::Sc => "\u{1b}qn",
            Self::Hack => " Qy   ",
        }
    }

    /// Starts it. Both sides of a pair are started at the same time, and get different `place`s of the same length.
    pub fn start(self, workshop: &Workshop, side: Side, place: &str) -> Outcome<Stage> {
        let folder = workshop.work(User::Own).join(place);
        // Of the round before.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).tried_on(&folder)?;
        let display = if self == Self::Magic { Some(Display::open()?) } else { None };
        let mut env: Vec<(&str, OsString)> = display.iter().map(|d| ("DISPLAY", (&d.name).into())).collect();
        let argv = match self {
            Self::Nvi => words(&["/usr/bin/nvi", "introduction"]),
            Self::Sc => words(&["/usr/bin/sc", "budget"]),
            Self::Magic => words(&[MAGIC, "--", "-noconsole", "-d", "X11", "-T", "scmos", "inverter"]),
            Self::Hack => {
                env.push(("LD_PRELOAD", workshop.executable("libseeded.so").into()));
                let words = words(&["-d", ".", "-n", "-utypist-F"]);
                std::iter::once(dungeon(workshop, &folder)?.into()).chain(words).collect()
            }
        };
        let program = Path::new(&argv[0]);
        if !program.exists() {
            return Err(Failure::NotHere(format!("{} is not installed; run `make install-deps`", program.display())));
        }
        let (terminal, slave) = Terminal::open()?;
        let copy = || slave.try_clone().tried("duplicate the terminal");
        let streams = Streams { input: copy()?.into(), output: copy()?.into(), errors: copy()?.into() };
        let running = Launch { workshop, user: User::Own, side, argv }.start_with(streams, |command| {
            command.current_dir(&folder).env("HOME", &folder).envs(env);
            lead_session(command);
        })?;
        Ok(Stage { running, terminal, display })
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The files that hack keeps in its folder, and hack itself without the rights of a group, which nobody could protect.
fn dungeon(workshop: &Workshop, folder: &Path) -> Outcome<PathBuf> {
    fs::create_dir(folder.join("save")).tried_on(folder)?;
    for file in ["perm", "record"] {
        fs::write(folder.join(file), "").tried_on(folder)?;
    }
    let copy = workshop.executable("hack");
    if Path::new(HACK).exists() && !copy.exists() {
        let contents = fs::read(HACK).tried_on(HACK)?;
        fs::write(&copy, contents).tried_on(&copy)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&copy, mode).tried_on(&copy)?;
    }
    Ok(copy)
}

impl Stage {
    pub fn act(&mut self, act: &Act) -> Outcome<()> {
        match (act, &mut self.display) {
            (Act::Key(key), _) => self.terminal.press(*key),
            (Act::Line(line), _) => self.terminal.type_in(&format!("{line}\r")),
            (Act::Mouse(line), Some(display)) => display.hand(line),
            (Act::Mouse(_), None) => Err(Failure::NotHere("a mouse without a display".into())),
        }
    }
}
