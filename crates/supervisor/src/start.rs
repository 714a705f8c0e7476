//! `outlast run`: from a command to a program under watch.

use crate::birth::{Birth, Born};
use crate::decision::Load;
use crate::encryption::Encryption;
use crate::end::End;
use crate::engine::Engine;
use crate::error::Error;
use crate::foreign_filter::{self, Refused};
use crate::front::Front;
use crate::generation::Generation;
use crate::hangs::Looking;
use crate::inject::Injection;
use crate::launch::{self, Command};
use crate::log::{Entry, Kind};
use crate::meta::{self, Meta};
use crate::options::Options;
use crate::probes::Probes;
use crate::say::say;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::stores::StorePlace;
use crate::supervisor::{Parts, Supervisor};
use crate::switch::{self, Whose};
use crate::{clock, credentials, names, oom_score, orphans, program};
use libc::pid_t;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use outlast_image::inject::{mode, option};
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, SystemTime};

/// What the person asked for.
pub struct Request<'a> {
    /// The command and its arguments; at least one.
    pub argv: Vec<OsString>,
    /// A program that had begun already; none: what a shell would find under the command's name.
    pub begun: Option<Begun>,
    pub name: Option<String>,
    /// Folder for the store; none: beside the session, in memory.
    pub store: Option<PathBuf>,
    pub options: Options,
    /// Key file that older generations are encrypted with.
    pub encrypt: Option<PathBuf>,
    /// Makes the policies that protect it.
    pub load: Load<'a>,
}

/// A program in whose process `outlast run` was put in front of it: in any case it must run.
pub struct Begun {
    /// The file that was executed, and which one that was: device and inode.
    pub file: PathBuf,
    pub identity: (u64, u64),
    /// What it is named after.
    pub called: PathBuf,
    /// What the kernel called its process: a script by its own name, not its interpreter's.
    pub comm: OsString,
    /// The file of the policy that wants it protected.
    pub policy: Option<PathBuf>,
}

/// Runs a program, protected if that is possible, until it has ended for good. `front`: the process that somebody waits for, if it is not
/// this one.
///
/// # Errors
/// It could not be started at all. That it runs unprotected is no error: the log says so, and standard error.
pub fn run(request: &Request, front: Option<Front>) -> Result<End, Error> {
    if let Some(refused) = foreign_filter::obstacle() {
        return Err(run_outside(request, refused));
    }
    let path = match &request.begun {
        Some(begun) => begun.file.clone(),
        None => program::find(&request.argv[0])?,
    };
    let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
    let inherited = *signals.inherited();
    match run_watched(request, &path, signals, front) {
        Err(e)
            if e.is_lack_of_room()
                || matches!(e, Error::Off)
                || (request.begun.is_some() && !e.is_of_the_program()) =>
        {
            let mut command = Command::new(&path, &request.argv)?;
            say(format_args!("{}: it runs unprotected: {e}", command.name()));
            if let Some(begun) = &request.begun {
                command.only(begun.identity)?;
            }
            Err(Error::NotExecutable(command.name(), launch::become_free(&command, &inherited)))
        }
        other => other,
    }
}

/// Becomes the program where not even what would be done first might be allowed. Returns only if that fails.
fn run_outside(request: &Request, refused: Refused) -> Error {
    let name = request.argv[0].to_string_lossy().into_owned();
    say(format_args!("{name}: it runs unprotected: {}", Error::Forbidden(refused)));
    let errno = match &request.begun {
        Some(begun) => {
            let command = Command::new(&begun.file, &request.argv);
            let command = command.and_then(|mut command| command.only(begun.identity).map(|()| command));
            match command {
                Ok(command) => launch::become_at_once(&command),
                Err(e) => return e,
            }
        }
        None => match launch::become_found(&request.argv) {
            Ok(Errno::NOENT | Errno::NOTDIR) => return Error::NotFound(name),
            Ok(errno) => errno,
            Err(e) => return e,
        },
    };
    Error::NotExecutable(name, errno)
}

/// An error means that the program has not begun.
fn run_watched(request: &Request, path: &Path, signals: Signals, front: Option<Front>) -> Result<End, Error> {
    // A key that is not there is better known before there is a program.
    let encryption = request.encrypt.as_deref().map(Encryption::begin).transpose()?;
    let seal = encryption.as_ref().map(Encryption::seal).transpose()?;
    let mut command = Command::new(path, &request.argv)?;
    if let Some(begun) = &request.begun {
        command.only(begun.identity)?;
        command.call(&begun.comm)?;
    }
    if Whose::All(Path::new(switch::OF_ALL)).is_off() {
        return Err(Error::Off);
    }
    let state = StateFolder::open()?;
    if switch::is_off(&state) {
        return Err(Error::Off);
    }
    // Better known before there is a program; but one that had begun goes on without.
    let probes = match &request.options.sections {
        sections if request.begun.is_none() && !sections.is_empty() => {
            Some(Probes::begin(sections, path).map_err(Error::Module)?)
        }
        _ => None,
    };
    orphans::revive(&state)?;
    let called = request.begun.as_ref().map_or(path, |begun| &begun.called);
    let (folder, lock) = state.create(request.name.as_deref(), called)?;
    let stores = StorePlace::begin(&folder, request.store.as_deref(), seal)?;
    let mut options = request.options.clone();
    // The supervisor stays, and with it the session in which all of the tree are for the kernel.
    options.set(option::OWN_SESSIONS, front.is_some());
    let decides = (request.load)(folder.name(), &mut options).inspect_err(|_| {
        stores.remove(0);
        let _ = folder.clear();
    })?;
    let obstacle = program::obstacle(path);
    let began = clock::monotonic();
    let birth = match obstacle {
        None => {
            Some(Birth::begin(&command, signals.inherited(), None).map_err(|e| Error::Kernel("start a process", e))?)
        }
        Some(_) => None,
    };
    let pid = birth.as_ref().map_or(0, |birth| birth.pid);
    let meta = Meta { pid, encryption, options, ..describe(request, path.into(), &stores) };
    // All this is done while the process is on its way to its exec stop.
    let generation = match Generation::create(&folder, &stores, 0) {
        Ok(generation) => generation,
        Err(e) => {
            birth.iter().for_each(Birth::end);
            stores.remove(0);
            // What cannot be removed is taken over by the next program of this name.
            let _ = folder.clear();
            return Err(e);
        }
    };
    let parts = Parts { folder, lock, stores, meta, command, engine: Rc::new(Engine::new()?), signals, decides };
    let mut supervisor = Supervisor::new(parts, generation).inspect_err(|_| birth.iter().for_each(Birth::end))?;
    supervisor.looking = Looking::with(probes, path);
    supervisor.front = front;
    supervisor.begin_tree();
    match supervisor.bring_up(birth, obstacle, began)? {
        Some(end) => Ok(supervisor.finish(end)),
        None => Ok(supervisor.watch()),
    }
}

fn describe(request: &Request, exe: PathBuf, stores: &StorePlace) -> Meta {
    Meta {
        version: meta::VERSION,
        argv: request.argv.iter().cloned().map(Into::into).collect(),
        exe: exe.into(),
        cwd: std::env::current_dir().unwrap_or_default().into(),
        started: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
        options: request.options.clone(),
        store: request.store.as_ref().map(|_| stores.path().into()),
        supervisor: meta::Supervisor::this(),
        pid: 0,
        generation: 0,
        credentials: credentials::Record::Inherited,
        oom_score: oom_score::of(std::process::id() as pid_t).unwrap_or(0),
        commits_before: 0,
        recoveries_before: 0,
        going_back: None,
        encryption: None,
        changed: None,
        designated: request.begun.as_ref().map(|begun| begun.called.clone().into()),
        policy: request.begun.as_ref().and_then(|begun| begun.policy.clone()).map(Into::into),
        first_ended: None,
        ended: None,
    }
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
        self.provide_fault_list();
        let mut birth = birth;
        for _ in 0..TRIES {
            let Some(process) = birth.take() else { break };
            if let Err(e) = self.enter(process.pid).and_then(|()| self.hand_over(&process)) {
                process.end();
                self.discard();
                return Err(e);
            }
            let faults = self.faults.as_ref();
            let injection = self.generation.injection(
                &self.engine,
                &self.meta.options,
                faults,
                mode::START,
                0,
                self.kindred.as_deref(),
            );
            let injection = Injection { comm: self.command.comm(), ..injection };
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
                Ok(Born::Gone(End::Killed(signal @ libc::SIGKILL))) => {
                    self.log.add(&Entry::new(Kind::Killed).cause(names::signal(signal)).pid(self.pid));
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
        self.generation.note_birth(self.pid);
        self.meta.write(&self.folder, &self.stores)
    }

    /// Sends what the process will receive at its exec stop.
    pub(crate) fn hand_over(&mut self, process: &Birth) -> Result<(), Error> {
        self.looking.forget();
        self.follow();
        let (faults, kindred) = (self.faults.as_ref(), self.kindred.as_deref());
        let what = self.generation.injection(&self.engine, &self.meta.options, faults, mode::START, 0, kindred);
        process.send(&what).map_err(|e| Error::Kernel("hand the store to the program", e))
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
        say(format_args!("{}: {}{detail}", self.command.name(), degradation.text().trim()));
    }

    /// Removes what was made for a program that could not be executed.
    fn discard(&mut self) {
        self.stores.remove(0);
        // What cannot be removed is taken over by the next program of this name.
        let _ = self.folder.clear();
    }
}
