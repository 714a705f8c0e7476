//! A supervisor may be killed at any time: the program goes on, and another supervisor takes over.

use crate::error::Error;
use crate::exec::Handover;
use crate::generation::{file_name, Generation};
use crate::log::{Entry, Kind};
use crate::orphans::{is_alive, newer_session};
use crate::remains::Remains;
use crate::session::Session;
use crate::supervisor::Supervisor;
use crate::{clock, processes, status};
use libc::pid_t;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering::Acquire;

/// Watches a program whose supervisor is gone, until it has ended for good.
pub fn adopt(name: &str, lock: RawFd) -> Result<(), Error> {
    let remains = Remains::of(name, Some(lock))?;
    let session = remains.folder().open_session()?;
    let newer = newer_session(remains.folder());
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
