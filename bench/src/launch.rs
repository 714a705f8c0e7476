//! Starting a program, by itself or protected, in the same surroundings.

use crate::failure::{Outcome, Tried};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// One half of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<'a> {
    Native,
    /// Under `outlast run` with these options.
    Protected(&'a [&'a str]),
}

/// A program to be started.
pub struct Launch<'a> {
    pub workshop: &'a Workshop,
    pub user: User,
    pub side: Side<'a>,
    pub argv: Vec<OsString>,
}

/// Standard streams of a program.
pub struct Streams {
    pub input: Stdio,
    pub output: Stdio,
    pub errors: Stdio,
}

/// Where the programs of a distribution are; a version manager's shims, which only some users could run, are not.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games";

impl Launch<'_> {
    /// Starts it.
    pub fn start(&self, streams: Streams) -> Outcome<Running> {
        self.start_with(streams, |_| ())
    }

    /// The same after a last change to the command.
    pub fn start_with(&self, streams: Streams, change: impl FnOnce(&mut Command)) -> Outcome<Running> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let name = format!("bench-{}", RUNS.fetch_add(1, Relaxed));
        let mut words: Vec<OsString> = Vec::new();
        if let Side::Protected(options) = self.side {
            words.push(self.workshop.executable("outlast").into());
            words.extend(["run", "--name", &name].map(OsString::from));
            words.extend(options.iter().map(OsString::from));
            words.push("--".into());
        }
        words.extend(self.argv.iter().cloned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.workshop.work(self.user))
            .env("TERM", "screen")
            .env("LANG", "C.UTF-8")
            .env("OUTLAST_STATE_DIR", self.workshop.state(self.user))
            .current_dir(self.workshop.work(self.user))
            .stdin(streams.input)
            .stdout(streams.output)
            .stderr(streams.errors);
        self.user.apply(&mut command);
        change(&mut command);
        let child = command.spawn().tried_on(&words[0])?;
        let folder = self.workshop.state(self.user).join(&name);
        Ok(Running::new(child, self.argv[0].to_string_lossy().into_owned(), self.protected().then_some(folder)))
    }

    fn protected(&self) -> bool {
        self.side != Side::Native
    }
}
