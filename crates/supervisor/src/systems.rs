//! Systems of components that have a name: what `ps` shows of them. Who manages one is in a file beside its log; what became of its
//! components is in the log.

use crate::error::Error;
use crate::log::{self, Entry, Kind};
use crate::meta::{replace, Supervisor};
use crate::program_folder::ProgramFolder;
use crate::state_folder::StateFolder;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

/// The file.
pub const FILE: &str = "system";

/// The process that manages a system.
#[derive(Serialize, Deserialize)]
struct Manager {
    #[serde(flatten)]
    process: Supervisor,
    /// RFC 3339.
    started: String,
    /// It may go on for other ends.
    ended: bool,
}

/// A system, in the words of `ps --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct System {
    pub name: String,
    /// Its manager; none if it has ended.
    pub pid: Option<i32>,
    /// `running` or `ended`.
    pub state: &'static str,
    /// Micro-reboots of all components.
    pub recoveries: u64,
    pub components: Vec<Component>,
    /// RFC 3339.
    pub started: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Component {
    pub name: String,
    /// `serving`, `given up` or `ended`.
    pub state: &'static str,
    pub recoveries: u64,
    /// As many of which it hung before.
    pub hangs: u64,
}

/// A line of its log, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    entry: Entry,
    component: String,
}

/// This process manages the system of that folder from now on.
///
/// # Errors
/// The file cannot be written.
pub fn began(folder: &ProgramFolder) -> Result<(), Error> {
    let started = Entry::new(Kind::Start).time;
    write(folder, &Manager { process: Supervisor::this(), started, ended: false })
}

/// It does no longer.
///
/// # Errors
/// The file cannot be written.
pub fn ended(folder: &ProgramFolder) -> Result<(), Error> {
    match read(folder) {
        Some(manager) => write(folder, &Manager { ended: true, ..manager }),
        None => Ok(()),
    }
}

/// All of the user's, by name.
///
/// # Errors
/// The state folder cannot be read.
pub fn all(state: &StateFolder) -> Result<Vec<System>, Error> {
    let folders = state.names()?.into_iter().filter_map(|name| state.program(&name).ok());
    Ok(folders.filter_map(|folder| of(&folder)).collect())
}

/// None: it is a program's.
fn of(folder: &ProgramFolder) -> Option<System> {
    let manager = read(folder)?;
    let runs = !manager.ended && manager.process.is_alive();
    let mut components = BTreeMap::new();
    for line in text(folder, log::FILE).unwrap_or_default().lines() {
        // What is said of the system as a whole is of no component.
        if let Ok(line) = serde_json::from_str::<Line>(line) {
            note(&mut components, line);
        }
    }
    let mut components: Vec<Component> = components.into_values().collect();
    if !runs {
        components.iter_mut().filter(|component| component.state == "serving").for_each(|it| it.state = "ended");
    }
    Some(System {
        name: folder.name().into(),
        pid: runs.then_some(manager.process.pid),
        state: if runs { "running" } else { "ended" },
        recoveries: components.iter().map(|component| component.recoveries).sum(),
        components,
        started: manager.started,
    })
}

fn note(components: &mut BTreeMap<String, Component>, line: Line) {
    let Line { entry, component: name } = line;
    let fresh = || Component { name: name.clone(), state: "serving", recoveries: 0, hangs: 0 };
    let component = components.entry(name.clone()).or_insert_with(fresh);
    match entry.event {
        Kind::Start => *component = fresh(),
        Kind::Recovered => component.recoveries += 1,
        Kind::Hung => component.hangs += 1,
        Kind::GaveUp => component.state = "given up",
        Kind::Exit => component.state = "ended",
        _ => (),
    }
}

fn read(folder: &ProgramFolder) -> Option<Manager> {
    serde_json::from_str(&text(folder, FILE)?).ok()
}

fn text(folder: &ProgramFolder, file: &str) -> Option<String> {
    let mut text = String::new();
    File::from(folder.open_file(file, OFlags::RDONLY).ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

fn write(folder: &ProgramFolder, manager: &Manager) -> Result<(), Error> {
    let failed = |errno| Error::File(folder.path().join(FILE), errno);
    let text = serde_json::to_vec(manager).map_err(|_| failed(Errno::INVAL))?;
    replace(folder.dir(), FILE, &text, false).map_err(failed)
}
