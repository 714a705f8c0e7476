//! The daemon: one thread lets executions go, one for each execution that a policy may be about interposes, one reads policies, one watches the
//! scheduler, and this one does what it is told.

use crate::deadline::Deadline;
use crate::execs::{Error, Execs};
use crate::network::{Network, Running};
use crate::process::Ours;
use crate::reader::{Folders, Reader};
use crate::starvation::Watch;
use crate::teller::Teller;
use crate::watching::Watching;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use outlast_policy::Check;
use outlast_supervisor::say::say;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use sd_notify::NotifyState;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What the person asked for.
pub struct Request {
    /// Only one daemon may hold this file.
    pub lock: PathBuf,
    /// Whether programs are protected that policies designate, and how.
    pub executions: Option<Executions>,
    /// How the scheduler is watched.
    pub scheduler: Watch,
    /// Where it says which other nodes there are.
    pub network: Network,
}

/// How executions are seen to.
pub struct Executions {
    /// Where policies are.
    pub folders: Box<Folders>,
    pub check: &'static Check,
    /// While this file is there everything is let go.
    pub switch: PathBuf,
}

/// How often it looks after itself, unless a manager of services wants to know more often.
const PULSE: Duration = Duration::from_secs(1);
/// How many files it may want to have open: the kernel refuses an execution that it cannot hand over.
const FILES: u64 = 4096;

/// Watches until it is told to end. Signals: SIGHUP reads the policies again, and has an outlast take over that was installed since; SIGTERM and SIGINT end it. Programs that are protected by
/// then stay so.
///
/// # Errors
/// It cannot watch here.
pub fn run(request: Request) -> Result<(), Error> {
    let lock = lock(&request.lock)?;
    let wanted = SigSet::from_iter([Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT]);
    wanted.thread_block().map_err(|e| Error::Kernel("block signals", e))?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|e| Error::Kernel("receive signals", e))?;
    let outlast = Arc::new(Ours::new(std::env::current_exe().map_err(|_| Error::NoSelf)?));
    let beats = Arc::new(AtomicU64::new(0));
    let (ask, asked) = mpsc::channel();
    let (done, read) = mpsc::channel();
    let watching = match request.executions {
        None => {
            let _ = done.send(());
            None
        }
        Some(executions) => Some(see_to(executions, &outlast, asked, done)?),
    };
    let teller = Arc::new(Teller::new(request.scheduler.alert.clone(), request.scheduler.counts.clone()));
    let (to_machine, inbox) = mpsc::channel();
    let settings = request.scheduler.settings;
    let (of_thread, its_beats, to_itself) = (Arc::clone(&teller), Arc::clone(&beats), to_machine.clone());
    begin("scheduler", move || {
        if let Err(e) = request.scheduler.watch(&of_thread, (&to_itself, &inbox), &its_beats) {
            say(format_args!("{e}"));
        }
    })?;
    let mut network = Running::new(request.network, settings, teller, to_machine);
    network.read();
    let _ = ask.send(());
    // Nobody may be there who wants to know.
    let tell = |what: &[NotifyState]| drop(sd_notify::notify(what));
    let pulse = sd_notify::watchdog_enabled().map_or(PULSE, |patience| PULSE.min(patience / 3));
    let pulse = pulse.max(Duration::from_millis(20));
    loop {
        let timeout = Timespec { tv_sec: pulse.as_secs() as i64, tv_nsec: pulse.subsec_nanos().into() };
        // Whatever ends the wait, everything is looked at.
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&timeout));
        match signals.read_signal().ok().flatten().map(|info| info.ssi_signo as i32) {
            Some(libc::SIGHUP) => {
                tell(&[NotifyState::Reloading, NotifyState::monotonic_usec_now().unwrap_or(NotifyState::Reloading)]);
                outlast.become_installed(|| watching.as_ref().map(|watching| watching.pause()));
                // To execute another program unblocks them.
                wanted.thread_block().map_err(|e| Error::Kernel("block signals", e))?;
                network.read();
                let _ = ask.send(());
            }
            Some(_) => {
                network.stop();
                tell(&[NotifyState::Stopping]);
                // Held until the process has ended.
                std::mem::forget(watching.as_ref().map(|watching| watching.pause()));
                drop(lock);
                return Ok(());
            }
            None => (),
        }
        network.tend();
        if read.try_recv().is_ok() {
            tell(&[NotifyState::Ready]);
        }
        let is_responsive = match &watching {
            Some(watching) => watching.is_responsive(),
            None => beats.swap(0, Relaxed) > 0,
        };
        if is_responsive {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Has threads see to executions, which read policies when they are asked to and say when that is done.
fn see_to(
    executions: Executions,
    outlast: &Arc<Ours>,
    asked: Receiver<()>,
    done: Sender<()>,
) -> Result<Arc<Watching>, Error> {
    let limit = getrlimit(Resource::Nofile);
    let files = limit.maximum.map_or(FILES, |most| most.min(FILES)).max(limit.current.unwrap_or(FILES));
    // Where that fails there is still room for some.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..limit });
    let watching = Arc::new(Watching::new(Execs::new()?, Arc::clone(outlast), executions.switch));
    let deadline = Deadline::begin().map_err(|e| Error::Kernel("set a timer", e))?;
    let reader = Reader::new(executions.folders, executions.check, Arc::clone(&watching));
    begin("policies", move || reader.read(&asked, &done))?;
    let of_thread = Arc::clone(&watching);
    begin("executions", move || of_thread.watch(deadline))?;
    Ok(watching)
}

fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(|_| Error::NoThread)
}

fn lock(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let kernel = |what| move |e: Errno| Error::Kernel(what, nix::errno::Errno::from_raw(e.raw_os_error()));
    let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::ACCESS | Errno::PERM) => return Err(Error::NotRoot),
        other => other.map_err(kernel("open its lock"))?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::Taken),
        other => other.map(|()| file).map_err(kernel("take its lock")),
    }
}
