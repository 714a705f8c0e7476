//! What a program is, for the commands that come later: `meta.json` in its folder.

use crate::credentials::Record;
use crate::encryption::Encryption;
use crate::end::End;
use crate::error::Error;
use crate::options::Options;
use crate::processes;
use crate::program_folder::ProgramFolder;
use crate::stores::StorePlace;
use outlast_image::inject::option;
use rustix::fs::{fsync, openat, renameat, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Name of the file in the program's folder.
pub const FILE: &str = "meta.json";

/// A description of a program under watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of this description.
    pub version: u32,
    pub argv: Vec<Text>,
    pub exe: Text,
    pub cwd: Text,
    /// RFC 3339, UTC, microseconds.
    pub started: String,
    pub options: Options,
    /// Where the store is, if not in the program's folder.
    pub store: Option<Text>,
    pub supervisor: Supervisor,
    /// Process id the program knows.
    pub pid: i32,
    /// How many times the program became another one by execve.
    pub generation: u32,
    /// What is known about its credentials.
    #[serde(default)]
    pub credentials: Record,
    /// How much the OOM killer prefers it to others.
    #[serde(default)]
    pub oom_score: i32,
    /// Commits and recoveries of generations before this one.
    pub commits_before: u64,
    pub recoveries_before: u64,
    /// The older generation that the store is being made to hold: until that is done, the store holds nothing.
    #[serde(default)]
    pub going_back: Option<u64>,
    /// With what its older generations are encrypted, if they are.
    #[serde(default)]
    pub encryption: Option<Encryption>,
    /// The change of its modules that was made last.
    #[serde(default)]
    pub changed: Option<Made>,
    /// The file that policies were asked about, where one has it protected.
    #[serde(default)]
    pub designated: Option<Text>,
    /// The policy's file: whoever reads others has no say.
    #[serde(default)]
    pub policy: Option<Text>,
    /// How the process ended that it began with, if another one has taken its place.
    #[serde(default)]
    pub first_ended: Option<End>,
    /// How the program ended, once it has.
    pub ended: Option<End>,
}

/// Version of the description written here.
pub const VERSION: u32 = 1;

/// The process that watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervisor {
    pub pid: i32,
    /// When it started, in clock ticks since boot, which tells it from a later process with its id.
    pub start_time: u64,
}

impl Supervisor {
    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id() as i32;
        Self { pid, start_time: processes::start_time(pid).unwrap_or(0) }
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        processes::is_running(self.pid) && processes::start_time(self.pid) == Some(self.start_time)
    }
}

/// A change of modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The wish's number.
    pub wish: u64,
    /// In the words of the log; none if nothing was otherwise.
    pub what: String,
}

/// A string of the operating system: as text where it is UTF-8, else as its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Self {
        text.into_string().map_or_else(|text| Self::Bytes(text.into_vec()), Self::Utf8)
    }
}

impl From<PathBuf> for Text {
    fn from(path: PathBuf) -> Self {
        path.into_os_string().into()
    }
}

impl Text {
    pub fn to_os_string(&self) -> OsString {
        match self {
            Self::Utf8(text) => text.into(),
            Self::Bytes(bytes) => std::ffi::OsStr::from_bytes(bytes).into(),
        }
    }

    pub fn to_path(&self) -> PathBuf {
        self.to_os_string().into()
    }
}

impl Meta {
    /// Reads a program's description.
    pub fn read(folder: &ProgramFolder) -> Result<Self, Error> {
        read(folder.dir(), FILE).map_err(|e| Error::File(folder.path().join(FILE), e))
    }

    /// Reads the copy that lies beside a store on a disk.
    pub fn read_beside(stores: &StorePlace) -> Result<Self, Error> {
        let failed = |e| Error::File(stores.path(), e);
        let (dir, file) = stores.description().ok_or(failed(Errno::NOENT))?;
        read(dir, &file).map_err(failed)
    }

    /// Writes it, and its copy, so that a reader finds either the old description or the new one.
    pub fn write(&self, folder: &ProgramFolder, stores: &StorePlace) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(|_| Error::File(folder.path().join(FILE), Errno::INVAL))?;
        replace(folder.dir(), FILE, &text, false).map_err(|e| Error::File(folder.path().join(FILE), e))?;
        match stores.description() {
            Some((dir, file)) => self.replace_beside(dir, &file, &text).map_err(|e| Error::File(stores.path(), e)),
            None => Ok(()),
        }
    }

    /// The copy of a program that is to survive a loss of power is on the medium afterwards, and with it the names of its folder.
    fn replace_beside(&self, dir: BorrowedFd<'_>, file: &str, text: &[u8]) -> Result<(), Errno> {
        let is_durable = self.options.bits & option::DURABLE != 0;
        replace(dir, file, text, is_durable)?;
        if is_durable {
            fsync(dir)?;
        }
        Ok(())
    }
}

fn read(dir: BorrowedFd<'_>, file: &str) -> Result<Meta, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut text = String::new();
    let fd = openat(dir, file, flags, Mode::empty())?;
    File::from(fd).read_to_string(&mut text).map_err(|_| Errno::IO)?;
    serde_json::from_str(&text).map_err(|_| Errno::BADMSG)
}

/// Writes a file anew, under another name first.
pub(crate) fn replace(dir: BorrowedFd<'_>, file: &str, text: &[u8], syncs: bool) -> Result<(), Errno> {
    let new = format!("{file}.new");
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(dir, &*new, flags, Mode::from_raw_mode(0o600))?;
    let mut new_file = File::from(fd);
    let written = new_file.write_all(text).and_then(|()| if syncs { new_file.sync_all() } else { Ok(()) });
    written.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    renameat(dir, &*new, dir, file)
}
