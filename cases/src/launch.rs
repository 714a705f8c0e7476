//! Command lines: the program by itself, under `outlast run`, and as another user.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::case::Program;
use crate::room::Room;
use crate::setting::{Setting, User, ORDINARY_ID};

/// Name under which `outlast` knows the program; every test has a state directory of its own.
pub const NAME: &str = "case";

/// Where the executables of the suite are.
#[derive(Clone, Debug)]
pub struct Tools {
    pub outlast: PathBuf,
    /// The launcher of this crate that becomes another user or enters a container's filter.
    pub confine: PathBuf,
}

/// Whether the program runs by itself or protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harness {
    Native,
    Outlast { options: Vec<String>, mutant: Option<String> },
}

/// Builds command lines for one room and setting.
#[derive(Clone, Debug)]
pub struct Launcher {
    pub tools: Tools,
    pub room: Room,
    pub setting: Setting,
}

impl Launcher {
    /// Command that runs `program` in the room.
    pub fn program(&self, program: &Program, harness: &Harness) -> Command {
        let mut words = Vec::new();
        if let Harness::Outlast { options, mutant } = harness {
            words.push(self.tools.outlast.display().to_string());
            words.extend(["run", "--name", NAME].map(String::from));
            words.extend(self.setting.options().iter().map(|s| s.to_string()));
            words.extend(options.iter().cloned());
            if let Some(mutant) = mutant {
                words.extend(["--test-hook".to_string(), mutant.clone()]);
            }
            words.push("--".to_string());
        }
        words.extend(program.argv.iter().cloned());
        let mut command = self.command(&words);
        command.envs(program.env.iter().cloned());
        command
    }

    /// Command that runs `outlast` itself, as the same user with the same state directory.
    pub fn outlast(&self, args: &[&str]) -> Command {
        let mut words = vec![self.tools.outlast.display().to_string()];
        words.extend(args.iter().map(|s| s.to_string()));
        self.command(&words)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut all = self.confinement();
        all.extend(words.iter().cloned());
        let mut command = Command::new(&all[0]);
        command
            .args(&all[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/games")
            .env("HOME", self.room.work())
            // What the emulator is: no REP sequence, as `xterm` would have.
            .env("TERM", "screen")
            .env("LANG", "C.UTF-8")
            .env("OUTLAST_STATE_DIR", self.room.state())
            .current_dir(self.room.work());
        command
    }

    fn confinement(&self) -> Vec<String> {
        let confine = |args: &[String]| {
            let mut words = vec![self.tools.confine.display().to_string()];
            words.extend(args.iter().cloned());
            words.push("--".to_string());
            words
        };
        match self.setting.user {
            User::Root => Vec::new(),
            User::Ordinary if !rustix::process::geteuid().is_root() => Vec::new(),
            User::Ordinary => confine(&["--id".to_string(), ORDINARY_ID.to_string()]),
            User::Docker => confine(&["--docker".to_string()]),
        }
    }
}

/// The programs of this crate, built by its build script.
pub fn programs() -> PathBuf {
    std::env::var_os("OUTLAST_CASES_PROGRAMS")
        .map_or_else(|| Path::new(env!("CASES_PROGRAMS")).to_path_buf(), PathBuf::from)
}

/// Absolute path of one of this crate's programs.
pub fn program(name: &str) -> String {
    programs().join(name).display().to_string()
}
