//! How a program fares: what `ps` shows.

use crate::durations::{Counted, Percentiles};
use crate::end::End;
use crate::error::Error;
use crate::meta::Meta;
use crate::program_folder::ProgramFolder;
use crate::session::Session;
use crate::state_folder::StateFolder;
use crate::{clock, processes, reports};
use libc::pid_t;
use outlast_image::control::{state, Control};
use outlast_image::fault_list::fault_source;
use serde::Serialize;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::Acquire;

/// One program, in the words of `ps --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub name: String,
    /// The program's process; none if it does not run.
    pub pid: Option<pid_t>,
    /// All processes of the program.
    pub pids: Vec<pid_t>,
    /// The process that keeps its descriptors.
    pub anchor: Option<pid_t>,
    /// The process that watches it.
    pub supervisor: Option<pid_t>,
    /// A name of [`state::NAMES`]; `resumable` if only the store is left, `exited` if it ended for good.
    pub state: String,
    /// Where the store is.
    pub store: String,
    pub commits: u64,
    pub recoveries: u64,
    /// Microseconds since the last commit.
    pub last_commit_age_us: Option<f64>,
    /// Microseconds that a commit waited in the mean until all other threads stood still; none if there never were several.
    pub parking_us: Option<f64>,
    /// Outputs that one thread committed and made for another.
    pub joined_outputs: u64,
    /// Microseconds that half of all commits took at most, and all but a hundredth, since the program was executed; none if there were none.
    pub commit_us: Option<Percentiles>,
    /// System calls that the engine has counted since the program was executed; of several threads an estimate.
    pub calls: u64,
    /// Fatal signals that were met by going back in place, since the program was executed.
    pub rollbacks: u64,
    /// Bytes that the store takes.
    pub store_bytes: u64,
    /// How many commits took how long, for who wants to know of a shorter time.
    #[serde(skip)]
    pub commit_durations: Counted,
    /// Pages in the last commit.
    pub dirty_pages: u64,
    /// Bytes that all commits since the program was executed have written to the store, and the largest of them, as a rule the first.
    pub log_bytes: u64,
    pub log_largest_bytes: u64,
    pub protected: bool,
    /// How written pages are found: a name of [`fault_source::NAMES`].
    pub fault_source: &'static str,
    /// Places of system calls that were rewritten, so that they need no signal to reach the engine.
    pub rewritten_sites: u64,
    /// Of the calls that the engine has counted, the share that came from such places; none if it has counted none. Of several
    /// threads an estimate: each counts its own.
    pub rewritten_share: Option<f64>,
    /// Names of what cannot be preserved.
    pub degradations: Vec<&'static str>,
    /// How many times it became another program.
    pub generation: u32,
    pub command: Vec<String>,
    /// RFC 3339.
    pub started: String,
    /// `exit 0`, `SIGTERM` …, once it has ended.
    pub ended: Option<String>,
}

/// All programs of the user, by name.
pub fn all(state: &StateFolder) -> Result<Vec<Status>, Error> {
    let folders = state.names()?.into_iter().filter_map(|name| state.program(&name).ok());
    // A folder without a description is that of a program that is being started or removed.
    Ok(folders.filter_map(|folder| of(&folder).ok()).collect())
}

/// One program.
pub fn of(folder: &ProgramFolder) -> Result<Status, Error> {
    let meta = Meta::read(folder)?;
    let mut status = Status {
        name: folder.name().into(),
        pid: None,
        pids: Vec::new(),
        anchor: None,
        supervisor: meta.supervisor.is_alive().then_some(meta.supervisor.pid),
        state: "exited".into(),
        store: meta
            .store
            .as_ref()
            .map_or_else(|| folder.path().join("store"), |path| path.to_path())
            .display()
            .to_string(),
        commits: meta.commits_before,
        recoveries: meta.recoveries_before,
        last_commit_age_us: None,
        parking_us: None,
        joined_outputs: 0,
        commit_us: None,
        calls: 0,
        rollbacks: 0,
        store_bytes: 0,
        commit_durations: Counted::default(),
        dirty_pages: 0,
        log_bytes: 0,
        log_largest_bytes: 0,
        protected: false,
        fault_source: fault_source::NAMES[0],
        rewritten_sites: 0,
        rewritten_share: None,
        degradations: Vec::new(),
        generation: meta.generation,
        command: meta.argv.iter().map(|arg| arg.to_os_string().to_string_lossy().into_owned()).collect(),
        started: meta.started,
        ended: meta.ended.map(End::words),
    };
    if meta.ended.is_none() {
        if let Ok(session) = folder.open_session() {
            live(&mut status, &session);
        }
    }
    Ok(status)
}

fn live(status: &mut Status, session: &Session) {
    let control = session.control();
    // The state first: the figures read after it are those of that state or of a later one.
    let known = control.state.load(Acquire);
    status.pid = program(session, status.supervisor);
    status.anchor = holder(session, control.anchor_pid.load(Acquire));
    status.pids = status.pid.into_iter().collect();
    status.commits += control.commits.load(Acquire);
    status.recoveries += reports::recoveries(control);
    status.dirty_pages = control.dirty_pages.load(Acquire);
    status.log_bytes = control.log_bytes.load(Acquire);
    status.log_largest_bytes = control.log_largest.load(Acquire);
    status.rewritten_sites = control.rewritten_sites.load(Acquire);
    // Trapped ones first: they are among all.
    let (trapped, all) = (control.trapped_calls.load(Acquire), control.gate_calls.load(Acquire));
    status.calls = all;
    status.rollbacks = control.rollbacks.load(Acquire);
    status.store_bytes = std::fs::metadata(&status.store).map_or(0, |file| file.blocks() * 512);
    status.commit_durations = Counted::of(&control.commit_durations);
    status.rewritten_share = (all > 0).then(|| 1.0 - trapped.min(all) as f64 / all as f64);
    status.degradations = reports::degradations(control.degradations.load(Acquire));
    let ns_per_tick = clock::ns_per_tick();
    status.last_commit_age_us = age_of_last_commit(control, ns_per_tick);
    status.commit_us = status.commit_durations.percentiles(ns_per_tick);
    status.parking_us = parking(control, ns_per_tick);
    status.joined_outputs = control.joined.load(Acquire);
    let source = control.fault_source.load(Acquire) as usize;
    status.fault_source = fault_source::NAMES.get(source).copied().unwrap_or("unknown");
    status.protected = known == state::PROTECTED && status.pid.is_some();
    status.state = match status.pid.or(status.anchor).or(status.supervisor) {
        None => "resumable".into(),
        Some(_) => state::NAMES.get(known as usize).copied().unwrap_or("unknown").into(),
    };
}

/// A process id from the control page, if that process really has this session open.
pub fn holder(session: &Session, pid: pid_t) -> Option<pid_t> {
    let fd = session.inject_args().session_fd;
    (pid > 0 && processes::is_running(pid) && processes::holds(pid, fd, session.file())).then_some(pid)
}

/// The program's process: one that runs without the engine holds no session, and is known by its parent.
pub fn program(session: &Session, supervisor: Option<pid_t>) -> Option<pid_t> {
    let pid = session.control().program_pid.load(Acquire);
    let child = || (pid > 0 && processes::is_running(pid) && processes::parent_of(pid) == supervisor).then_some(pid);
    holder(session, pid).or_else(|| supervisor.and_then(|_| child()))
}

/// Microseconds since the last commit, whose moment the engine knows in ticks of the time stamp counter only.
fn age_of_last_commit(control: &Control, ns_per_tick: f64) -> Option<f64> {
    let last = Some(control.last_commit_tsc.load(Acquire)).filter(|last| *last != 0)?;
    // One that is made just now may seem to lie ahead: processors read the counter when they like.
    Some(micros(clock::ticks().saturating_sub(last) as f64 * ns_per_tick))
}

/// Microseconds that a commit waited in the mean until all other threads stood still.
fn parking(control: &Control, ns_per_tick: f64) -> Option<f64> {
    let (stops, ticks) = (control.stops.load(Acquire), control.stop_ticks.load(Acquire));
    (stops > 0).then(|| micros(ticks as f64 * ns_per_tick / stops as f64))
}

/// With one decimal.
fn micros(ns: f64) -> f64 {
    (ns / 100.0).round() / 10.0
}
