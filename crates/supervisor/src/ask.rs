//! Requests to a program that runs: commit now, stop for good.

use crate::error::Error;
use crate::meta::{self, Meta};
use crate::orphans::is_alive;
use crate::program_folder::ProgramFolder;
use crate::session::Session;
use crate::{forward, futex, processes, status};
use libc::pid_t;
use outlast_image::control::{request, state};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

/// How long a program may take to come to a point where it can commit.
const COMMIT_PATIENCE: Duration = Duration::from_secs(5);
/// How often something is looked at that nobody wakes us for.
const PULSE: Duration = Duration::from_millis(5);

/// Has the program commit, and waits until it has.
pub fn commit(folder: &ProgramFolder) -> Result<(), Error> {
    ask(folder, request::COMMIT).map(drop)
}

/// Has the engine leave the program alone, and waits until it has.
pub fn detach(folder: &ProgramFolder) -> Result<(), Error> {
    let session = ask(folder, request::DETACH)?;
    if session.control().state.load(Acquire) != state::SUSPENDED {
        return Err(Error::NotDetached(folder.name().into()));
    }
    // Who has started it stays with it; who has not, ends.
    let asked = Instant::now();
    while !Meta::read(folder).is_ok_and(|meta| is_its_parent(&session, &meta)) {
        if !folder.has("session") || asked.elapsed() > COMMIT_PATIENCE {
            break;
        }
        std::thread::sleep(PULSE);
    }
    Ok(())
}

fn is_its_parent(session: &Session, meta: &Meta) -> bool {
    processes::parent_of(session.control().program_pid.load(Acquire)) == Some(meta.supervisor.pid)
}

/// Asks the engine for something, and waits until it has answered.
fn ask(folder: &ProgramFolder, what: u32) -> Result<Session, Error> {
    let session = folder.open_session().map_err(|_| Error::NotRunning(folder.name().into()))?;
    let pid = status::program(&session, supervisor(folder)).ok_or_else(|| Error::NotRunning(folder.name().into()))?;
    let control = session.control();
    if control.state.load(Acquire) != state::PROTECTED {
        return Err(Error::NotProtected(folder.name().into()));
    }
    let served = control.served.load(Acquire);
    control.request.fetch_or(what, AcqRel);
    futex::wake(&control.request);
    forward::pass_the_gate(pid);
    let asked = Instant::now();
    while control.request.load(Acquire) & what != 0 {
        if asked.elapsed() > COMMIT_PATIENCE {
            control.request.fetch_and(!what, AcqRel);
            return Err(Error::NoCommit(folder.name().into()));
        }
        futex::wait(&control.served, served, PULSE);
    }
    Ok(session)
}

/// Ends the program for good: by SIGTERM, and by SIGKILL if it has not ended after `patience`.
pub fn stop(folder: &ProgramFolder, patience: Duration) -> Result<(), Error> {
    let mut session = folder.open_session().map_err(|_| Error::NotRunning(folder.name().into()))?;
    if supervisor(folder).is_none() && !is_alive(&session) {
        // Of one that is dead nothing can be stopped; who resumes it wants it to go on.
        return Err(Error::NotRunning(folder.name().into()));
    }
    let asked = Instant::now();
    let (mut hit, mut last) = (0, None);
    while folder.has("session") {
        // Another process of it may have taken the first one's place.
        session = folder.open_session().unwrap_or(session);
        session.control().stopping.store(1, Release);
        last = Meta::read(folder).ok().map(|meta| meta.supervisor).or(last);
        // It may be between two processes: whichever there is gets each signal once.
        if let Some(pid) = status::program(&session, supervisor(folder)) {
            let signal = if asked.elapsed() < patience { libc::SIGTERM } else { libc::SIGKILL };
            if hit != signal || signal == libc::SIGKILL {
                hit = signal;
                kill(pid, signal);
            }
        }
        if asked.elapsed() > patience + COMMIT_PATIENCE {
            return Err(Error::NotStopped(folder.name().into()));
        }
        std::thread::sleep(PULSE);
    }
    // Only without its supervisor it leaves its name to others. That has little to do yet.
    let ended = Instant::now();
    while last.as_ref().is_some_and(meta::Supervisor::is_alive) && ended.elapsed() < COMMIT_PATIENCE {
        std::thread::sleep(PULSE);
    }
    Ok(())
}

fn supervisor(folder: &ProgramFolder) -> Option<pid_t> {
    Meta::read(folder)
        .ok()
        .map(|meta| meta.supervisor)
        .filter(meta::Supervisor::is_alive)
        .map(|supervisor| supervisor.pid)
}

/// Sends a signal to a process that may not be a child of ours, and to no other that gets its number meanwhile.
fn kill(pid: pid_t, signal: i32) {
    // A process that is gone needs no signal.
    let Ok(pidfd) = processes::open(pid) else { return };
    let Some(signal) = rustix::process::Signal::from_named_raw(signal) else { return };
    let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
    if signal == rustix::process::Signal::TERM {
        // A stopped program ends only once it is continued.
        let _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::CONT);
    }
}
