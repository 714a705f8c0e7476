//! `outlast attach`: the engine comes into a program that runs already.
//!
//! It is looked at from outside, stopped, looked at once more, and the engine is mapped into it as at an exec. What the engine would
//! know there because there is nothing yet, it asks the kernel for. Until it has the program in its hands every failure ends with
//! the program running on as it was.

mod beside;
mod examine;
mod hold;
mod refusal;
mod restart;
mod shared;
mod stopped;

use crate::clock;
use crate::credentials::{Credentials, Record};
use crate::decision::Load;
use crate::encryption::Encryption;
use crate::engine::Engine;
use crate::error::Error;
use crate::foreign_filter;
use crate::generation::Generation;
use crate::inject::{self, Failure, Injection};
use crate::launch::Command;
use crate::log::{Entry, Kind};
use crate::meta::{self, Meta};
use crate::options::Options;
use crate::remote::Remote;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::stores::StorePlace;
use crate::supervisor::{Parts, Supervisor};
use crate::trace::{self, Fault};
use crate::visit::Hindrance;
use crate::{oom_score, orphans, processes, reports};
pub use beside::stand_beside;
pub use examine::has_engine;
use hold::{Hold, Place};
use libc::pid_t;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use outlast_image::inject::{mode, option, ThreadArgs};
use outlast_image::layout::{THREADS, THREADS_BASE, THREAD_ENTRY, THREAD_LEN};
use refusal::Refusal;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::{Duration, Instant, SystemTime};

/// How long the engine may take for its first commit.
const PATIENCE: Duration = Duration::from_secs(60);
const PULSE: Duration = Duration::from_micros(200);

/// What the person asked for.
pub struct Request<'a> {
    pub pid: pid_t,
    pub name: Option<String>,
    /// Folder for the store; none: beside the session, in memory.
    pub store: Option<PathBuf>,
    pub options: Options,
    /// Key file that older generations are encrypted with.
    pub encrypt: Option<PathBuf>,
    /// Makes the policies that protect it.
    pub load: Load<'a>,
    /// Where a policy wants it protected: the file that policies were asked about, and the policy's.
    pub designated: Option<(PathBuf, PathBuf)>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attached {
    pub name: String,
    pub pid: pid_t,
    /// For how long the program stood still, in microseconds.
    pub pause_us: f64,
    /// Names of what cannot be preserved.
    pub degradations: Vec<String>,
}

/// A program that was attached to, to be watched.
pub struct Watch(Supervisor);

impl Watch {
    /// Until it has ended for good.
    pub fn watch(mut self) {
        self.0.watch();
    }
}

/// Refuses, at no cost to the process, what can be seen to be impossible.
pub fn may_attach(pid: pid_t) -> Result<(), Error> {
    if let Some(refused) = foreign_filter::obstacle() {
        return Err(Error::Forbidden(refused));
    }
    match pid {
        1 => return Err(Refusal::First.of(pid)),
        _ if pid < 1 || is_own(pid) => return Err(Refusal::Own.of(pid)),
        _ => {}
    }
    examine::examine(pid).map_err(|refusal| refusal.of(pid))
}

/// Is the process this one, or one that waits for it?
fn is_own(pid: pid_t) -> bool {
    let mut own = std::process::id() as pid_t;
    while own > 1 && own != pid {
        own = processes::parent_of(own).unwrap_or(0);
    }
    own == pid
}

/// Puts the engine into a process; returns once it is protected.
///
/// # Errors
/// The process runs on as it was.
pub fn attach(request: &Request) -> Result<(Attached, Watch), Error> {
    let pid = request.pid;
    may_attach(pid)?;
    let encryption = request.encrypt.as_deref().map(Encryption::begin).transpose()?;
    let seal = encryption.as_ref().map(Encryption::seal).transpose()?;
    // Before there is another thread, which would have them unblocked and take them.
    let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
    let image = processes::image_of(pid).ok_or_else(|| Refusal::Gone.of(pid))?;
    let credentials = Credentials::of(pid).map(Record::Changed).ok_or_else(|| Refusal::Gone.of(pid))?;
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| "/".into());
    let command = Command::new(&image.exe, &image.argv)?;
    let state = StateFolder::open()?;
    orphans::revive(&state)?;
    let after = request.designated.as_ref().map_or(&image.exe, |(executable, _)| executable);
    let (folder, lock) = state.create(request.name.as_deref(), after)?;
    let stores = StorePlace::begin(&folder, request.store.as_deref(), seal)?;
    let mut options = request.options.clone();
    options.set(option::FOREIGN_PARENT, true);
    let made = (request.load)(folder.name(), &mut options)
        .and_then(|decides| Generation::create(&folder, &stores, 0).map(|generation| (decides, generation)));
    let (decides, generation) = made.inspect_err(|_| {
        stores.remove(0);
        // What cannot be removed is taken over by the next program of this name.
        let _ = folder.clear();
    })?;
    let meta = Meta {
        version: meta::VERSION,
        argv: image.argv.iter().cloned().map(Into::into).collect(),
        exe: image.exe.into(),
        cwd: cwd.clone().into(),
        started: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
        options,
        store: request.store.as_ref().map(|_| stores.path().into()),
        supervisor: meta::Supervisor::this(),
        pid,
        generation: 0,
        // Ours may be others. The supervisor looks again when the engine is in.
        credentials,
        oom_score: oom_score::of(pid).unwrap_or(0),
        commits_before: 0,
        recoveries_before: 0,
        going_back: None,
        encryption,
        changed: None,
        designated: request.designated.as_ref().map(|(executable, _)| executable.clone().into()),
        policy: request.designated.as_ref().map(|(_, policy)| policy.clone().into()),
        first_ended: None,
        ended: None,
    };
    let parts = Parts { folder, lock, stores, meta, command, engine: Rc::new(Engine::new()?), signals, decides };
    let mut supervisor = Supervisor::new(parts, generation)?;
    // Where the program is is where a fresh process for it would begin; if that is gone, anywhere is as good.
    let _ = std::env::set_current_dir(cwd);
    match supervisor.enter_running(pid) {
        Ok(pause) => {
            let attached = supervisor.describe_attached(pause);
            Ok((attached, Watch(supervisor)))
        }
        Err(refusal) => {
            supervisor.clear_away();
            // As above.
            let _ = supervisor.folder.clear();
            Err(refusal.of(pid))
        }
    }
}

impl Supervisor {
    /// Stops the process, puts the engine in, and waits until that has it; returns how long the program stood still.
    fn enter_running(&mut self, pid: pid_t) -> Result<Duration, Refusal> {
        self.adopted = true;
        self.pid = pid;
        self.kin.adopt(pid).map_err(|_| Refusal::Gone)?;
        let described = self.meta.write(&self.folder, &self.stores);
        described.map_err(|e| Refusal::Engine(e.to_string()))?;
        self.take_standard_streams(Some(pid));
        self.generation.note_birth(pid);
        self.provide_fault_list();
        if !processes::children_of(pid).is_empty() {
            self.generation.degrade(Degradation::Children);
        }
        let began = clock::monotonic();
        let mut hold = Hold::take(pid)?;
        examine::examine(pid)?;
        let injection =
            self.generation.injection(&self.engine, &self.meta.options, self.faults.as_ref(), mode::ATTACH, 0, None);
        inject(pid, &mut hold, &injection)?;
        self.send_threads(pid, hold)?;
        self.await_engine(pid)?;
        let resumed = self.generation.control().t_resumed.load(Acquire);
        let pause = Duration::from_nanos(resumed.saturating_sub(began));
        self.committed = true;
        self.look_at_credentials();
        self.find_anchor();
        let name = self.command.name();
        self.log.add(&Entry::new(Kind::Attached).cause(name).took(pause).pid(pid));
        Ok(pause)
    }

    /// Has the other threads come in once the engine has room for them. If it has none, they go on as they were.
    fn send_threads(&self, pid: pid_t, hold: Hold) -> Result<(), Refusal> {
        if hold.places().next().is_none() {
            return Ok(());
        }
        let control = self.generation.control();
        let asked = Instant::now();
        while control.awaits_threads.load(Acquire) == 0 {
            if control.state.load(Acquire) != state::STARTING || !self.kin.is_alive(pid) {
                // What became of it is seen to later.
                return Ok(());
            }
            if asked.elapsed() > PATIENCE {
                return Err(Refusal::Engine("the engine does not begin".into()));
            }
            std::thread::sleep(PULSE);
        }
        hold.send_to(THREAD_ENTRY, |n| THREADS_BASE + (n as u64 + 1) * THREAD_LEN)
    }

    /// Waits until the engine has taken its first commit, or has given up.
    fn await_engine(&self, pid: pid_t) -> Result<(), Refusal> {
        let asked = Instant::now();
        let control = self.generation.control();
        loop {
            match control.state.load(Acquire) {
                state::STARTING if !self.kin.is_alive(pid) => return Err(Refusal::Gone),
                state::STARTING if asked.elapsed() > PATIENCE => {
                    // Should it come to one after all, it finds that nobody waits for it, and leaves the program alone.
                    let left = control.state.compare_exchange(state::STARTING, state::SUSPENDED, AcqRel, Acquire);
                    if left.is_ok() {
                        return Err(Refusal::Engine("the engine does not come to its first commit".into()));
                    }
                }
                state::STARTING => std::thread::sleep(PULSE),
                state::SUSPENDED => {
                    let why = reports::degradations(control.degradations.load(Acquire)).join(", ");
                    return Err(Refusal::Engine(format!("the engine could not protect it ({why})")));
                }
                // It is written just after the state.
                _ if control.t_resumed.load(Acquire) != 0 || !self.kin.is_alive(pid) => return Ok(()),
                // It is protected, and only what it took is not known.
                _ if asked.elapsed() > PATIENCE => return Ok(()),
                _ => std::thread::sleep(PULSE),
            }
        }
    }

    fn describe_attached(&self, pause: Duration) -> Attached {
        let degradations = reports::degradations(self.generation.control().degradations.load(Acquire));
        Attached {
            name: self.folder.name().into(),
            pid: self.pid,
            pause_us: (pause.as_nanos() / 100) as f64 / 10.0,
            degradations: degradations.into_iter().map(String::from).collect(),
        }
    }
}

/// Maps the engine into the stopped process and has its first thread go on in it.
fn inject(pid: pid_t, hold: &mut Hold, what: &Injection<'_>) -> Result<(), Refusal> {
    hold.places().try_for_each(allows)?;
    let others: Vec<ThreadArgs> = hold.places().skip(1).map(thread_args).collect();
    if others.len() >= THREADS {
        return Err(Refusal::Threads(others.len() + 1));
    }
    what.session.set_thread_args(&others).map_err(|e| Refusal::Kernel("write to its session", e))?;
    // From here on whoever visits lets it go.
    let first = hold.hand_over_first();
    let (stop, regs) = (first.stop, first.stop.0);
    let mut remote = Remote::visit(pid, stop).map_err(|hindrance| match hindrance {
        Hindrance::Refused(what, e) => Refusal::Kernel(what, e),
        Hindrance::Fault(fault) => broken(fault),
    })?;
    let placed = uses_tiles(&mut remote).and_then(|uses_tiles| match uses_tiles {
        true => Err(Failure::Refused(Degradation::VectorState, "save AMX tiles", Errno::OPNOTSUPP)),
        false => inject::place(&mut remote, pid, None, what),
    });
    match placed {
        Ok(session_fd) => {
            let told = thread_args(&first);
            let mut args = inject::args(what, &first.resumption.regs, session_fd);
            (args.mask, args.rseq, args.waits_in) = (told.mask, told.rseq, told.waits_in);
            args.threads = others.len() as u64;
            what.session.set_inject_args(&args);
            let start = libc::user_regs_struct { rip: what.engine.entry(), orig_rax: u64::MAX, ..regs };
            // Signals wait until the engine can take them.
            remote.go(&start, u64::MAX).map_err(broken)
        }
        Err(Failure::Refused(_, what, e)) => {
            remote.go(&regs, stop.1).map_err(broken)?;
            Err(Refusal::Kernel(what, e))
        }
        Err(Failure::Fault(fault)) => Err(broken(fault)),
    }
}

/// Is there anything that forbids to have a thread go on from its place?
fn allows(place: &Place) -> Result<(), Refusal> {
    /// Selector of 64-bit user code.
    const USER_CS: u64 = 0x33;
    let regs = &place.stop.0;
    match () {
        _ if regs.cs != USER_CS => Err(Refusal::ForeignAbi),
        _ if regs.gs != 0 => Err(Refusal::Has("a selector of its own in the GS register")),
        _ if trace::dispatches_calls(place.tid) => Err(Refusal::Has("its system calls dispatched to itself")),
        _ if place.resumption.waits_in == Some(libc::SYS_restart_syscall as u64) => Err(Refusal::StoppedBefore),
        _ => Ok(()),
    }
}

/// What the engine is told of a thread.
fn thread_args(place: &Place) -> ThreadArgs {
    ThreadArgs {
        regs: inject::registers(&place.resumption.regs),
        mask: place.stop.1,
        rseq: place.sequence,
        waits_in: place.resumption.waits_in.map_or(0, |number| number + 1),
        tid: place.tid as u64,
    }
}

/// May the process use AMX, whose state the engine does not save?
fn uses_tiles(remote: &mut Remote) -> Result<bool, Failure> {
    const ARCH_GET_XCOMP_PERM: u64 = 0x1022;
    const TILE_DATA: i32 = 1 << 18;
    let mut batch = remote.batch();
    let permitted = batch.data(&[0; 8]);
    batch.call(libc::SYS_arch_prctl, &[ARCH_GET_XCOMP_PERM, permitted]);
    // A kernel without it has no tiles either.
    Ok(remote.run(&mut batch)?.is_none() && batch.word(permitted) & TILE_DATA != 0)
}

/// The process was in the middle of what is ours when something failed that cannot.
fn broken(fault: Fault) -> Refusal {
    match fault {
        Fault::Gone(_) | Fault::Kernel(_, Errno::SRCH) => Refusal::Gone,
        Fault::Kernel(what, e) => Refusal::Kernel(what, e),
    }
}
