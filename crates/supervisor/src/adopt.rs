//! A supervisor may be killed at any time: the program goes on, and another supervisor takes over.
//!
//! The one that died may have been in the middle of anything. What it had asked the anchor for is taken back or waited
//! for, a program that it traced dies with it, and an execve that it followed counts if the new image has the engine.

use crate::decision::Load;
use crate::end::End;
use crate::error::Error;
use crate::exec::Handover;
use crate::generation::{file_name, Generation};
use crate::log::{Entry, Kind};
use crate::orphans::{bury, is_alive, is_resumable, newer_session};
use crate::program_folder::Lock;
use crate::remains::Remains;
use crate::session::Session;
use crate::signals::unblock_all;
use crate::supervisor::Supervisor;
use crate::{clock, oom_score, processes};
use libc::pid_t;
use outlast_image::control::{exec_answer, state, supervisor};
use outlast_image::degradation::Degradation;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// How often, and how long each time, is waited for what the end of a supervisor takes.
const DYING: (u32, Duration) = (2000, Duration::from_millis(1));

/// A supervisor that begins anew in the same process.
pub struct Again {
    /// Which modules failed, and how: what [`crate::again::execute`] was told, each time.
    pub failures: Vec<String>,
    /// How the program's process ended, if that was being decided.
    pub ended: Option<End>,
    /// It was another outlast before.
    pub is_upgraded: bool,
}

/// Watches a program that this process has watched before; returns how it ended.
pub fn begin_again(name: &str, lock: RawFd, again: Again, load: Load<'_>) -> Result<End, Error> {
    let remains = Remains::locked(name, handed_down(lock))?;
    let session = remains.folder().open_session()?;
    let newer = newer_session(remains.folder());
    let mut supervisor = remains.supervise(session, load)?;
    if let Some(newer) = newer {
        supervisor.take_up_handover(newer)?;
    }
    supervisor.failed_before = again.failures;
    if again.is_upgraded {
        supervisor.note_upgrade();
    }
    Ok(supervisor.take_up(Origin::Again(again.ended)))
}

/// Whom a supervisor takes over from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Another, which is dead.
    Other,
    /// Itself; how the program's process ended, if that was being decided.
    Again(Option<End>),
}

/// Watches a program whose supervisor is gone, until it has ended for good. `lock` is the program's, if it was handed down.
pub fn adopt(name: &str, lock: Option<RawFd>, load: Load<'_>) -> Result<(), Error> {
    // An anchor that starts a supervisor has all signals blocked.
    unblock_all();
    let remains = match lock {
        Some(lock) => Remains::locked(name, handed_down(lock))?,
        None => take_over(name)?,
    };
    await_until(|| !remains.meta().supervisor.is_alive());
    let session = remains.folder().open_session()?;
    let newer = newer_session(remains.folder());
    if !is_alive(&session) && !newer.as_ref().is_some_and(is_alive) {
        // Nothing is left but the store: that is for the person to resume, where the person is.
        if !is_resumable(&session) {
            bury(remains.folder());
        }
        return Ok(());
    }
    // Where the program began is where a fresh process for it would begin; if that is gone, anywhere is as good.
    let _ = std::env::set_current_dir(remains.meta().cwd.to_path());
    let mut supervisor = remains.supervise(session, load)?;
    if let Some(newer) = newer {
        supervisor.take_up_handover(newer)?;
    }
    supervisor.take_up(Origin::Other);
    Ok(())
}

fn handed_down(lock: RawFd) -> Lock {
    // SAFETY: the number was given to us by the process that started us, for this one use.
    Lock::held(unsafe { OwnedFd::from_raw_fd(lock) })
}

/// The program with its lock: a supervisor that dies is known to be dead before the kernel takes its files from it.
pub fn take_over(name: &str) -> Result<Remains, Error> {
    let mut taken = Remains::of(name);
    await_until(|| {
        let waits = matches!(taken, Err(Error::Running(_))) && is_orphaned(name);
        if waits {
            taken = Remains::of(name);
        }
        !waits
    });
    taken
}

fn is_orphaned(name: &str) -> bool {
    let session = crate::state_folder::StateFolder::open().and_then(|state| state.program(name)?.open_session());
    session.is_ok_and(|session| session.control().supervisor.load(Acquire) & supervisor::DIED != 0)
}

/// Waits for what comes soon.
fn await_until(mut done: impl FnMut() -> bool) {
    let (times, pause) = DYING;
    for _ in 0..times {
        if done() {
            return;
        }
        std::thread::sleep(pause);
    }
}

impl Supervisor {
    fn note_upgrade(&mut self) {
        let file = std::env::current_exe().unwrap_or_default();
        let entry = Entry::new(Kind::SupervisorUpgraded).cause(file.display().to_string());
        self.log.add(&entry.pid(std::process::id() as pid_t));
        // It was executed by its descriptor, after which it is called otherwise.
        let _ = rustix::thread::set_name(c"outlast");
    }

    /// Finds the processes of the program, and watches them.
    fn take_up(&mut self, origin: Origin) -> End {
        self.adopted = true;
        // One that cannot be written leaves the old one, which names a supervisor that is dead.
        let _ = self.meta.write(&self.folder, &self.stores);
        if origin == Origin::Other {
            self.log.add(&Entry::new(Kind::SupervisorRestarted).pid(std::process::id() as pid_t));
        }
        if let Some(anchor) = self.holder(self.generation.control().anchor_pid.load(Acquire)) {
            oom_score::exempt(anchor);
            self.anchor = anchor;
        }
        self.settle_respawn();
        self.tell_engine();
        let program = self.holder(self.generation.control().program_pid.load(Acquire));
        // Those of one that goes on by itself are its own business: whoever reads them may wait for their end.
        if origin == Origin::Other && self.meta.first_ended.is_none() {
            self.take_standard_streams(program.or((self.anchor > 0).then_some(self.anchor)));
        }
        self.pid = program.unwrap_or(0);
        // Before anything is decided about the first one: the others outlive it.
        self.take_up_tree();
        if program.is_none() {
            // In which groups it was nobody can say any more; who started us may be in others than all of the program.
            self.count_at(self.anchor);
            if let Err(e) = self.finish_going_back() {
                self.kept = true;
                let end = self.give_up(&e.to_string(), End::Killed(libc::SIGKILL));
                return self.finish(end);
            }
            if self.went_on_alone() {
                self.go_unprotected(Degradation::TraceForbidden, "no supervisor was there when it became another");
                self.end_tree();
                self.clear_away();
                return End::Exited(0);
            }
            let end = match origin {
                Origin::Other => None,
                Origin::Again(end) => end,
            };
            if let Some(end) = self.on_death(end) {
                self.is_over(end);
                return self.watch();
            }
        }
        if self.anchor == 0 && self.generation.control().state.load(Acquire) == state::PROTECTED {
            self.ask_for_anchor();
        }
        self.repeat_requests();
        self.watch()
    }

    /// Finds the processes of another process of a tree, which is on its own; how it ended, if it has.
    pub(crate) fn find_processes(&mut self) -> Option<End> {
        if let Some(anchor) = self.holder(self.generation.control().anchor_pid.load(Acquire)) {
            oom_score::exempt(anchor);
            self.anchor = anchor;
        }
        self.settle_respawn();
        self.pid = self.holder(self.generation.control().program_pid.load(Acquire)).unwrap_or(0);
        if self.pid == 0 {
            return self.on_death(None);
        }
        if self.anchor == 0 && self.generation.control().state.load(Acquire) == state::PROTECTED {
            self.ask_for_anchor();
        }
        self.repeat_requests();
        None
    }

    /// Watches the anchor if it was made since we took over: it is no child of ours, and nobody may have told of it yet.
    pub(crate) fn find_anchor(&mut self) {
        let [anchor, next] = self.generation.anchors();
        if self.adopted && !self.kin.has(anchor) {
            self.anchor = self.holder(anchor).inspect(|anchor| oom_score::exempt(*anchor)).unwrap_or(0);
        }
        if self.adopted && next > 0 && !self.kin.has(next) {
            self.holder(next);
        }
    }

    fn holder(&mut self, pid: pid_t) -> Option<pid_t> {
        self.kin.holder(&self.generation.session, pid)
    }

    /// An execve was on its way when the supervisor died: the new image counts if it lives.
    pub(crate) fn take_up_handover(&mut self, newer: Session) -> Result<(), Error> {
        let number = self.meta.generation + 1;
        if !is_alive(&newer) {
            self.folder.remove(&file_name("session", number));
            self.stores.remove(number);
            return Ok(());
        }
        let new = Generation::new(&self.folder, number, newer, self.stores.open_generation(number)?)?;
        let previous = Box::new(std::mem::replace(&mut self.generation, new));
        self.handover = Handover::Waiting { previous: Some(previous), began: clock::monotonic() };
        Ok(())
    }

    /// Whether the program became another one while nobody watched: it runs without the engine, and is left alone.
    fn went_on_alone(&self) -> bool {
        let control = self.generation.control();
        let pid = control.program_pid.load(Acquire);
        // One that had a tracer dies with it, sooner or later.
        let alone = control.state.load(Acquire) == state::EXECING && !self.was_traced() && processes::has_memory(pid);
        if !alone {
            await_until(|| !processes::is_running(pid) || !processes::has_memory(pid));
        }
        alone
    }

    /// Whether the supervisor that died had taken hold of the program for an execve: then the kernel kills it.
    fn was_traced(&self) -> bool {
        self.generation.control().exec_ready.load(Acquire) == exec_answer::TRACED
    }

    /// The program's standard streams become ours, for a process that may have to take its place.
    pub(crate) fn take_standard_streams(&self, from: Option<pid_t>) {
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
