//! `outlast run`: from a command to a program under watch.

use crate::birth::{Birth, Born};
use crate::end::End;
use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Handover;
use crate::files::{Lock, ProgramFolder, StateFolder};
use crate::generation::Generation;
use crate::kin::Kin;
use crate::launch::{self, Command};
use crate::log::{Entry, Kind, Log};
use crate::meta::{self, Meta};
use crate::options::Options;
use crate::signals::Signals;
use crate::stores::StorePlace;
use crate::supervisor::Supervisor;
use crate::verdict::Tries;
use crate::{adopt, clock, credentials, privileges, program};
use libc::pid_t;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use outlast_image::inject::mode;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, SystemTime};

/// What the person asked for.
pub struct Request {
    /// The command and its arguments; at least one.
    pub argv: Vec<OsString>,
    pub name: Option<String>,
    /// Folder for the store; none: beside the session, in memory.
    pub store: Option<PathBuf>,
    pub options: Options,
}

/// Runs a program, protected if that is possible, until it has ended for good.
///
/// # Errors
/// It could not be started at all. That it runs unprotected is no error: the log says so, and standard error.
pub fn run(request: &Request) -> Result<End, Error> {
    let path = program::find(&request.argv[0])?;
    let command = Command::new(&path, &request.argv)?;
    let state = StateFolder::open()?;
    adopt::revive_orphans(&state)?;
    let (folder, lock) = state.create(request.name.as_deref(), &path)?;
    let stores = match &request.store {
        Some(path) => StorePlace::in_folder(path, folder.name())?,
        None => StorePlace::beside(&folder)?,
    };
    let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
    let obstacle = program::obstacle(&path);
    let began = clock::monotonic();
    let birth = match obstacle {
        None => {
            Some(Birth::begin(&command, signals.inherited(), None).map_err(|e| Error::Kernel("start a process", e))?)
        }
        Some(_) => None,
    };
    let prepared =
        prepare(request, path, folder, lock, stores, signals, command, birth.as_ref().map(|birth| birth.pid));
    let mut supervisor = match (prepared, &birth) {
        (Ok(supervisor), _) => supervisor,
        (Err(e), Some(birth)) => {
            birth.end();
            return Err(e);
        }
        (Err(e), None) => return Err(e),
    };
    match supervisor.bring_up(birth, obstacle, began)? {
        Some(end) => Ok(supervisor.finish(end)),
        None => Ok(supervisor.watch()),
    }
}

/// Everything but the process; done while that is on its way to its exec stop.
#[allow(clippy::too_many_arguments, reason = "each is a part of the supervisor made before")]
fn prepare(
    request: &Request,
    path: PathBuf,
    folder: ProgramFolder,
    lock: Lock,
    stores: StorePlace,
    signals: Signals,
    command: Command,
    pid: Option<pid_t>,
) -> Result<Supervisor, Error> {
    let engine = Engine::new()?;
    let generation = Generation::create(&folder, &stores, 0)?;
    let log = Log::open(&folder)?;
    let meta = Meta {
        version: meta::VERSION,
        argv: request.argv.iter().cloned().map(Into::into).collect(),
        exe: path.into(),
        cwd: std::env::current_dir().unwrap_or_default().into(),
        started: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
        options: request.options.clone(),
        store: request.store.as_ref().map(|_| stores.path().into()),
        supervisor: meta::Supervisor::this(),
        pid: pid.unwrap_or(0),
        generation: 0,
        credentials: credentials::Record::Inherited,
        commits_before: 0,
        recoveries_before: 0,
        ended: None,
    };
    Ok(Supervisor {
        folder,
        _lock: lock,
        stores,
        meta,
        log,
        command,
        engine,
        signals,
        kin: Kin::default(),
        generation,
        handover: Handover::None,
        injection_faults: 0,
        pid: pid.unwrap_or(0),
        anchor: 0,
        committed: false,
        may_choose_pid: privileges::may_choose_pid(),
        tries: Tries::default(),
        recovering: None,
    })
}

/// How often a program that is killed before its first instruction is started again.
const TRIES: u32 = 100;

impl Supervisor {
    /// Injects, or lets the program run without. `Some` if it has ended already.
    fn bring_up(
        &mut self,
        birth: Option<Birth>,
        obstacle: Option<Degradation>,
        began: u64,
    ) -> Result<Option<End>, Error> {
        self.log.add(&Entry::new(Kind::Start).cause(self.command.name()).pid(self.pid));
        let mut birth = birth;
        for _ in 0..TRIES {
            let Some(process) = birth.take() else { break };
            self.enter(process.pid)?;
            let sent = process.send(&self.engine, self.generation.session.file(), self.generation.store.as_fd());
            sent.map_err(|e| Error::Kernel("hand the store to the program", e))?;
            let injection = self.generation.injection(&self.engine, &self.meta.options, mode::START, 0);
            match process.finish(&self.command, &injection) {
                Ok(Born::Protected) => {
                    let took = Duration::from_nanos(clock::monotonic() - began);
                    self.log.add(&Entry::new(Kind::Injected).took(took).pid(self.pid));
                    return Ok(None);
                }
                Ok(Born::Unprotected(degradation, what)) => {
                    self.unprotected(degradation, &what);
                    return Ok(None);
                }
                Ok(Born::Untraceable(degradation, what)) => return self.run_free(degradation, &what).map(|()| None),
                Ok(Born::Gone(End::Killed(libc::SIGKILL))) => {
                    let next = Birth::begin(&self.command, self.signals.inherited(), None);
                    birth = Some(next.map_err(|e| Error::Kernel("start a process", e))?);
                }
                Ok(Born::Gone(end)) => return Ok(Some(end)),
                Err(e) => {
                    self.discard();
                    return Err(e);
                }
            }
        }
        let degradation = obstacle.unwrap_or(Degradation::TraceForbidden);
        self.run_free(degradation, "").map(|()| None)
    }

    /// Describes the process for the commands that come later.
    fn enter(&mut self, pid: pid_t) -> Result<(), Error> {
        self.pid = pid;
        self.meta.pid = pid;
        self.note_birth();
        self.meta.write(&self.folder, &self.stores)
    }

    /// Starts the program as if outlast were not there, and says why.
    fn run_free(&mut self, degradation: Degradation, what: &str) -> Result<(), Error> {
        let started = launch::start_free(&self.command, self.signals.inherited());
        match started.map_err(|e| Error::Kernel("start a process", e))? {
            Ok(pid) => self.enter(pid)?,
            Err(e) => {
                self.discard();
                return Err(Error::NotExecutable(self.command.name(), e));
            }
        }
        self.unprotected(degradation, what);
        Ok(())
    }

    fn unprotected(&mut self, degradation: Degradation, what: &str) {
        self.generation.control().state.store(state::SUSPENDED, Release);
        self.generation.degrade(degradation);
        let detail = if what.is_empty() { String::new() } else { format!(" ({what})") };
        self.log.add(&Entry::new(Kind::Suspended).cause(format!("{}{detail}", degradation.key())).pid(self.pid));
        eprintln!("outlast: {}: {}{detail}", self.command.name(), degradation.text().trim());
    }

    /// Removes what was made for a program that could not be executed.
    fn discard(&mut self) {
        self.stores.remove(0);
        // What cannot be removed is taken over by the next program of this name.
        let _ = self.folder.clear();
    }
}
