//! The event log of a program: one JSON object a line, appended with one write each.

use crate::error::Error;
use crate::journal;
use crate::program_folder::ProgramFolder;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// Name of the file in the program's folder.
pub const FILE: &str = "log.jsonl";

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The supervisor started the program.
    Start,
    /// The engine is in the program.
    Injected,
    /// The OOM killer killed the program.
    OomKilled,
    /// The program was found dead, to be recovered.
    Killed,
    /// It runs again.
    Recovered,
    /// The engine met a fatal signal by going back to the last commit.
    Rollback,
    /// A fatal signal met a program with several threads, which is to be respawned.
    Crashed,
    /// Something that cannot be preserved.
    Degradation,
    /// Protection ended, the program goes on.
    Suspended,
    /// The program became another one, and is protected again.
    Exec,
    /// It runs again after everything but the store was gone.
    Resumed,
    /// The anchor was gone and was made again.
    AnchorRenewed,
    /// The bounded number of tries is used up.
    GaveUp,
    /// The program ended.
    Exit,
    /// The process that it began with ended, and another one of it has its place.
    PassedOn,
    /// Another supervisor took the place of one that was gone.
    SupervisorRestarted,
    /// The supervisor became another outlast.
    SupervisorUpgraded,
    /// The engine met an error of its own.
    EngineError,
    /// It runs again, in the state of an older generation: what it did and was told since is not undone.
    WentBack,
    /// A generation could not be kept.
    NotKept,
    /// A module that protects it failed.
    ModuleFailed,
    /// A module protects it from now on, no longer, or in another way.
    ModuleChanged,
    /// A module that protects it has something to say.
    ModuleSaid,
    /// A thread of it hangs.
    Hung,
    /// A thread of it does not get on, and would not after a recovery.
    Starved,
    /// The program began as a copy of another one.
    Forked,
    /// The engine was put into the program while that ran.
    Attached,
    /// The program was left alone, as a person had asked for.
    Detached,
    /// It was recovered more often in a short time than it should have to be.
    Storm,
    /// What it has of something grows, and does not shrink again.
    Leaks,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// RFC 3339, UTC, microseconds.
    pub time: String,
    pub event: Kind,
    /// The signal, the degradation, the error: whatever was the reason.
    pub cause: Option<String>,
    /// Rung of the ladder, where one was climbed.
    pub rung: Option<u32>,
    /// What it took, in microseconds.
    pub duration_us: Option<f64>,
    /// Where in the engine the program was when it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Sequence number of the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Of threads that hang: in which functions each is, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<String>,
}

impl Entry {
    /// An entry of now that says nothing yet but what happened.
    pub fn new(event: Kind) -> Self {
        Self::at(SystemTime::now(), event)
    }

    pub fn at(time: SystemTime, event: Kind) -> Self {
        let time = humantime::format_rfc3339_micros(time).to_string();
        Self {
            time,
            event,
            cause: None,
            rung: None,
            duration_us: None,
            phase: None,
            seq: None,
            pid: None,
            stacks: Vec::new(),
        }
    }

    pub fn cause(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    pub fn rung(self, rung: u32) -> Self {
        Self { rung: Some(rung), ..self }
    }

    /// Rounded to a tenth of a microsecond.
    pub fn took(self, duration: Duration) -> Self {
        Self { duration_us: Some((duration.as_nanos() / 100) as f64 / 10.0), ..self }
    }

    pub fn pid(self, pid: i32) -> Self {
        Self { pid: Some(pid), ..self }
    }

    pub fn stacks(self, stacks: Vec<String>) -> Self {
        Self { stacks, ..self }
    }

    pub fn seq(self, seq: u64) -> Self {
        Self { seq: Some(seq), ..self }
    }

    pub fn phase(self, phase: u32) -> Self {
        let name = outlast_image::event::phase::NAMES.get(phase as usize);
        Self { phase: name.map(|name| (*name).into()), ..self }
    }
}

/// The log, open for appending.
pub struct Log {
    file: File,
    /// The program's name.
    name: String,
    /// The socket of the journal, if that is to be told as well.
    journal: Option<String>,
}

impl Log {
    pub fn open(folder: &ProgramFolder, journal: Option<&str>) -> Result<Self, Error> {
        let file = folder.open_file(FILE, OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND)?;
        Ok(Self { file: File::from(file), name: folder.name().into(), journal: journal.map(String::from) })
    }

    /// The same log, for another process of the program.
    pub fn another(&self) -> Result<Self, Error> {
        let copied = self.file.try_clone();
        let file =
            copied.map_err(|e| Error::Kernel("copy a descriptor", Errno::from_io_error(&e).unwrap_or(Errno::MFILE)))?;
        Ok(Self { file, name: self.name.clone(), journal: self.journal.clone() })
    }

    /// Adds a line. A log that cannot be written (no room) must not disturb the program: the line is then missing.
    pub fn add(&mut self, entry: &Entry) {
        if let Ok(mut line) = serde_json::to_vec(entry) {
            line.push(b'\n');
            let _ = self.file.write_all(&line);
        }
        if let Some(socket) = &self.journal {
            journal::send(socket, &entry.fields(&self.name));
        }
    }
}
