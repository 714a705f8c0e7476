//! A supervisor may be killed at any time: the program goes on, and the next command starts another supervisor for it.

use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Handover;
use crate::files::{Lock, ProgramFolder, StateFolder};
use crate::generation::{file_name, Generation};
use crate::kin::Kin;
use crate::launch::Command;
use crate::log::{Entry, Kind, Log};
use crate::meta::{self, Meta};
use crate::session::Session;
use crate::signals::Signals;
use crate::stores::StorePlace;
use crate::supervisor::Supervisor;
use crate::verdict::Tries;
use crate::{clock, privileges, processes, status};
use libc::pid_t;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering::Acquire;

/// Name of the command by which outlast starts itself as a supervisor.
pub const COMMAND: &str = "supervise";

/// Starts a supervisor for every program of the user that lives without one.
pub fn revive_orphans(state: &StateFolder) -> Result<(), Error> {
    for name in state.names()? {
        let Ok(folder) = state.program(&name) else { continue };
        if !folder.has("session") {
            continue;
        }
        // What cannot be locked has a supervisor; what cannot be read is being made or removed.
        let Ok(Some(lock)) = folder.lock() else { continue };
        let Ok(session) = folder.open_session() else { continue };
        if is_alive(&session) || newer_session(&folder).is_some_and(|session| is_alive(&session)) {
            start_supervisor(&name, &lock)?;
        } else if !is_resumable(&session) {
            bury(&folder);
        }
    }
    Ok(())
}

/// Whether a process of the program lives.
pub fn is_alive(session: &Session) -> bool {
    let control = session.control();
    let pids = [control.program_pid.load(Acquire), control.anchor_pid.load(Acquire)];
    pids.into_iter().any(|pid| status::holder(session, pid).is_some())
}

/// Whether a dead program can be brought back from its store.
pub fn is_resumable(session: &Session) -> bool {
    session.has_commit()
        && !matches!(session.control().state.load(Acquire), state::SUSPENDED | state::EXITING | state::GIVEN_UP)
}

/// Removes what is left of a program that ended while nobody watched.
fn bury(folder: &ProgramFolder) {
    if let Ok(stores) =
        Meta::read(folder).and_then(|meta| StorePlace::of(folder, meta.store.map(|path| path.to_path()).as_deref()))
    {
        stores.remove(0);
    }
    folder.remove("session");
}

/// The session of an image that was to take the place of the one before when the supervisor died.
fn newer_session(folder: &ProgramFolder) -> Option<Session> {
    let next = Meta::read(folder).ok()?.generation + 1;
    folder.open_session_file(&file_name("session", next)).ok()
}

/// Starts `outlast supervise`, detached from the terminal, with the program's lock handed down.
fn start_supervisor(name: &str, lock: &Lock) -> Result<(), Error> {
    let fd = lock.file().as_raw_fd();
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("outlast").args([COMMAND, name, "--lock", &fd.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure makes two system calls and touches no memory.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            match libc::fcntl(fd, libc::F_SETFD, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let failed = |e: std::io::Error| {
        Error::Kernel("start a supervisor", rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO))
    };
    command.spawn().map(drop).map_err(failed)
}

/// What is left of a program, taken over.
pub struct Remains {
    folder: ProgramFolder,
    lock: Lock,
    stores: StorePlace,
    meta: Meta,
}

impl Remains {
    /// Locks a program. `lock` is a descriptor on which the lock is held already.
    ///
    /// # Errors
    /// It has a supervisor, has ended, or is not described.
    pub fn of(name: &str, lock: Option<RawFd>) -> Result<Self, Error> {
        let folder = StateFolder::open()?.program(name)?;
        let lock = match lock {
            // SAFETY: the number was given to us by the process that started us, for this one use.
            Some(fd) => Lock::held(unsafe { OwnedFd::from_raw_fd(fd) }),
            None => folder.lock()?.ok_or_else(|| Error::Running(name.into()))?,
        };
        let meta = Meta::read(&folder)?;
        let stores = StorePlace::of(&folder, meta.store.as_ref().map(|path| path.to_path()).as_deref())?;
        Ok(Self { folder, lock, stores, meta })
    }

    /// Locks a program whose store lies in this folder on a disk, and describes it anew if its folder is gone.
    pub fn on_disk(name: &str, path: &Path) -> Result<Self, Error> {
        match Self::of(name, None) {
            Err(Error::NoSuchProgram(_)) => (),
            known => return known,
        }
        let (folder, lock) = StateFolder::open()?.create(Some(name), Path::new(name))?;
        let stores = StorePlace::in_folder(path, name)?;
        let meta = Meta { supervisor: meta::Supervisor::this(), ..Meta::read_beside(&stores)? };
        meta.write(&folder, &stores)?;
        Ok(Self { folder, lock, stores, meta })
    }

    /// Removes what is left of a program that does not run: its store, its log, its description.
    pub fn remove(folder: ProgramFolder) -> Result<(), Error> {
        let Some(_lock) = folder.lock()? else { return Err(Error::Running(folder.name().into())) };
        if folder.open_session().is_ok_and(|session| is_alive(&session)) {
            return Err(Error::Running(folder.name().into()));
        }
        bury(&folder);
        folder.clear()
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    pub fn stores(&self) -> &StorePlace {
        &self.stores
    }

    pub fn folder(&self) -> &ProgramFolder {
        &self.folder
    }

    /// A supervisor for it, with this session; no process is watched yet.
    pub fn supervise(self, session: Session) -> Result<Supervisor, Error> {
        let Self { folder, lock, stores, mut meta } = self;
        // Before there is another thread, which would have them unblocked and take them.
        let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
        let argv: Vec<OsString> = meta.argv.iter().map(|arg| arg.to_os_string()).collect();
        let command = Command::new(&meta.exe.to_path(), &argv)?;
        let generation = Generation::new(meta.generation, session, stores.open()?)?;
        meta.supervisor = meta::Supervisor::this();
        meta.ended = None;
        let log = Log::open(&folder)?;
        Ok(Supervisor {
            _lock: lock,
            stores,
            log,
            command,
            engine: Engine::new()?,
            signals,
            kin: Kin::default(),
            handover: Handover::None,
            injection_faults: 0,
            pid: 0,
            anchor: 0,
            committed: generation.session.has_commit(),
            may_choose_pid: privileges::may_choose_pid(),
            tries: Tries::default(),
            recovering: None,
            folder,
            meta,
            generation,
        })
    }
}

/// Watches a program whose supervisor is gone, until it has ended for good.
pub fn adopt(name: &str, lock: RawFd) -> Result<(), Error> {
    let remains = Remains::of(name, Some(lock))?;
    let session = remains.folder.open_session()?;
    let newer = newer_session(&remains.folder);
    let mut supervisor = remains.supervise(session)?;
    if let Some(newer) = newer {
        supervisor.take_up_handover(newer)?;
    }
    supervisor.meta.write(&supervisor.folder, &supervisor.stores)?;
    supervisor.log.add(&Entry::new(Kind::SupervisorRestarted).pid(std::process::id() as pid_t));
    let control = supervisor.generation.control();
    let anchor = status::holder(&supervisor.generation.session, control.anchor_pid.load(Acquire));
    let program = status::holder(&supervisor.generation.session, control.program_pid.load(Acquire));
    supervisor.take_standard_streams(program.or(anchor));
    if let Some(anchor) = anchor {
        // One that ends at this moment is missed at the next respawn.
        let _ = supervisor.kin.adopt(anchor);
        supervisor.anchor = anchor;
    }
    match program.filter(|pid| supervisor.kin.adopt(*pid).is_ok()) {
        Some(pid) => supervisor.pid = pid,
        None if supervisor.went_on_alone() => {
            supervisor.go_unprotected(Degradation::TraceForbidden, "no supervisor was there when it became another");
            supervisor.clear_away();
            return Ok(());
        }
        None => {
            if let Some(end) = supervisor.on_death(None) {
                supervisor.finish(end);
                return Ok(());
            }
        }
    }
    if anchor.is_none() && supervisor.generation.control().state.load(Acquire) == state::PROTECTED {
        supervisor.ask_for_anchor();
    }
    supervisor.watch();
    Ok(())
}

impl Supervisor {
    /// An execve was on its way when the supervisor died: the new image counts if it lives, or can be recovered.
    fn take_up_handover(&mut self, newer: Session) -> Result<(), Error> {
        let number = self.meta.generation + 1;
        if !is_alive(&newer) {
            self.folder.remove(&file_name("session", number));
            self.stores.remove(number);
            return Ok(());
        }
        let new = Generation::new(number, newer, self.stores.open_generation(number)?)?;
        let previous = Box::new(std::mem::replace(&mut self.generation, new));
        self.handover = Handover::Waiting { previous, began: clock::monotonic() };
        Ok(())
    }

    /// Whether the program became another one while nobody watched: it runs without the engine, and is left alone.
    fn went_on_alone(&self) -> bool {
        let control = self.generation.control();
        control.state.load(Acquire) == state::EXECING && processes::is_running(control.program_pid.load(Acquire))
    }

    /// The program's standard streams become ours, for a process that may have to take its place.
    fn take_standard_streams(&self, from: Option<pid_t>) {
        let Some(pid) = from else { return };
        for number in 0..3 {
            // One that the program has closed stays what it is here: nothing.
            if let Ok(copy) = processes::descriptor_of(pid, number) {
                // SAFETY: plain system call; nothing here owns the descriptors 0 to 2.
                unsafe { libc::dup2(copy.as_raw_fd(), number) };
            }
        }
    }
}
