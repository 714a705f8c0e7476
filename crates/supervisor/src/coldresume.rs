//! Rung 3: program and anchor are gone. A fresh process of the same program becomes the one in the store.

use crate::birth::{Birth, Born};
use crate::credentials::Credentials;
use crate::end::End;
use crate::error::Error;
use crate::generation::Generation;
use crate::log::{Entry, Kind};
use crate::names;
use crate::processes;
use crate::respawn::Recovering;
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::control::Control;
use outlast_image::inject::{mode, option};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// What an anchor calls itself.
const ANCHOR: &str = "outlast-anchor";
/// How long the kernel may take to end processes that have much memory.
const ENDING: Duration = Duration::from_secs(5);
/// How often a fresh process that is killed on its way is replaced by another.
const TRIES: u32 = 100;

impl Supervisor {
    /// Resumes the program from its store alone; `Some` if that is not possible.
    pub(crate) fn cold_resume(&mut self, cause: &str, died: u64) -> Option<End> {
        let control = self.generation.control();
        control.t_death.store(died, Release);
        let (seq, phase) = (control.last_seq.load(Acquire), control.phase.load(Acquire));
        let restored = control.restored.load(Acquire);
        match self.begin_from_store() {
            Ok(()) => {
                let cause = cause.to_string();
                self.recovering = Some(Recovering { kind: Kind::Resumed, rung: 3, cause, died, seq, phase, restored });
                None
            }
            Err(e) => {
                self.kept = true;
                Some(self.give_up(&format!("{cause}, and {e}"), End::Killed(libc::SIGKILL)))
            }
        }
    }

    /// Starts the program from its beginning: it died before its first instruction, so that nobody can tell.
    pub(crate) fn start_again(&mut self, signal: i32, died: u64) -> Option<End> {
        let cause = names::signal(signal);
        self.log.add(&Entry::new(Kind::Killed).cause(&*cause).pid(self.pid));
        match self.begin_anew() {
            Ok(()) => {
                let took = Duration::from_nanos(crate::clock::monotonic() - died);
                self.log.add(&Entry::new(Kind::Recovered).cause(cause).rung(2).took(took).pid(self.pid));
                self.note_recovery(crate::clock::monotonic());
                None
            }
            Err(e) => Some(self.give_up(&format!("{cause}, and {e}"), End::Killed(signal))),
        }
    }

    /// Replaces what was prepared for a program that never ran, and a fresh process with it.
    fn begin_anew(&mut self) -> Result<(), Error> {
        self.dismiss_anchors();
        let session = self.folder.create_session("session")?;
        self.generation = Generation::new(&self.folder, self.generation.number, session, self.stores.create(0)?)?;
        self.follow_signals();
        self.begin_again(mode::START, None)
    }

    /// A fresh process that becomes the one in the store. The session stays: completions of the ring are in it.
    fn begin_from_store(&mut self) -> Result<(), Error> {
        let credentials = self.meta.credentials.required()?;
        self.dismiss_anchors();
        self.await_predecessors();
        forget_requests(self.generation.control());
        // However the program came to be ours, what is made now is a child of ours.
        self.meta.options.set(option::FOREIGN_PARENT, false);
        self.begin_again(mode::RESUME, Some(&credentials))
    }

    /// As long as one of them is not quite gone it has the program's files open, and those are not the program's alone. There may be an
    /// anchor that was just made and that nobody knows of.
    fn await_predecessors(&mut self) {
        let until = Instant::now() + ENDING;
        let left = || until.saturating_duration_since(Instant::now());
        let is_unknown = |pid: &pid_t| *pid != self.pid && processes::name_of(*pid).is_some_and(|name| name == ANCHOR);
        for pid in processes::all().filter(is_unknown).collect::<Vec<_>>() {
            if self.kin.holder(&self.generation.session, pid).is_some() {
                self.kin.kill(pid);
            }
            processes::await_end(pid, left());
        }
        processes::await_end(self.generation.control().program_pid.load(Acquire), left());
    }

    /// A fresh process with the engine in it.
    fn begin_again(&mut self, mode: u32, credentials: Option<&Credentials>) -> Result<(), Error> {
        self.provide_fault_list();
        for _ in 0..TRIES {
            let birth = Birth::begin(&self.command, self.signals.inherited(), credentials.cloned());
            let birth = birth.map_err(|e| Error::Kernel("start a process for the program", e))?;
            self.pid = birth.pid;
            self.hand_over(&birth)?;
            self.generation.note_birth(self.pid);
            self.put_in_place(self.pid);
            let known = if mode == mode::RESUME { self.meta.pid } else { 0 };
            let faults = self.faults.as_ref();
            let injection = self.generation.injection(
                &self.engine,
                &self.meta.options,
                faults,
                mode,
                known,
                self.kindred.as_deref(),
            );
            match birth.finish(&self.command, &injection)? {
                Born::Protected if mode == mode::RESUME => return Ok(()),
                Born::Protected => {
                    self.meta.pid = self.pid;
                    return self.meta.write(&self.folder, &self.stores);
                }
                Born::Gone(End::Killed(libc::SIGKILL)) => (),
                Born::Gone(_) => return Err(Error::Unresumable("its new process ended early".into())),
                Born::Unprotected(_, what) | Born::Untraceable(_, what) => return Err(Error::Unresumable(what)),
            }
        }
        Err(Error::Unresumable("its new process was killed again and again".into()))
    }
}

/// What was asked of processes that are gone.
fn forget_requests(control: &Control) {
    for word in [&control.request, &control.anchor_command, &control.exec_request, &control.exec_ready] {
        word.store(0, Release);
    }
    control.anchor_pid.store(0, Release);
    control.unreadable.store(0, Release);
}
