//! Rung 3: program and anchor are gone. A fresh process of the same program becomes the one in the store.

use crate::birth::{Birth, Born};
use crate::end::End;
use crate::error::Error;
use crate::generation::Generation;
use crate::log::{Entry, Kind};
use crate::names;
use crate::respawn::Recovering;
use crate::supervisor::Supervisor;
use outlast_image::control::Control;
use outlast_image::inject::mode;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Release};

/// How often a fresh process that is killed on its way is replaced by another.
const TRIES: u32 = 100;

impl Supervisor {
    /// Resumes the program from its store alone; `Some` if that is not possible.
    pub(crate) fn cold_resume(&mut self, cause: &str, died: u64) -> Option<End> {
        let seq = self.generation.control().last_seq.load(Acquire);
        match self.begin_again(mode::RESUME) {
            Ok(()) => {
                let cause = cause.to_string();
                self.generation.control().t_death.store(died, Release);
                self.recovering = Some(Recovering { kind: Kind::Resumed, rung: 3, cause, died, seq, restored: 0 });
                None
            }
            Err(e) => Some(self.give_up(&format!("{cause}, and {e}"), End::Killed(libc::SIGKILL))),
        }
    }

    /// Starts the program from its beginning: it died before its first instruction, so that nobody can tell.
    pub(crate) fn start_again(&mut self, signal: i32, died: u64) -> Option<End> {
        let cause = names::signal(signal);
        self.log.add(&Entry::new(Kind::Killed).cause(&*cause).pid(self.pid));
        match self.begin_again(mode::START) {
            Ok(()) => {
                let took = std::time::Duration::from_nanos(crate::clock::monotonic() - died);
                self.log.add(&Entry::new(Kind::Recovered).cause(cause).rung(2).took(took).pid(self.pid));
                None
            }
            Err(e) => Some(self.give_up(&format!("{cause}, and {e}"), End::Killed(signal))),
        }
    }

    /// A fresh process with the engine in it.
    fn begin_again(&mut self, mode: u32) -> Result<(), Error> {
        self.dismiss_anchors();
        for _ in 0..TRIES {
            let generation = self.fresh_generation(mode)?;
            let birth = Birth::begin(&self.command, self.signals.inherited());
            let birth = birth.map_err(|e| Error::Kernel("start a process for the program", e))?;
            let pid = birth.pid;
            let sent = birth.send(&self.engine, generation.session.file(), generation.store.as_fd());
            sent.map_err(|e| Error::Kernel("hand the store to the program", e))?;
            let known = if mode == mode::RESUME { self.meta.pid } else { 0 };
            let injection = generation.injection(&self.engine, &self.meta.options, mode, known);
            match birth.finish(&self.command, &injection)? {
                Born::Protected => {
                    self.take(generation, pid);
                    return Ok(());
                }
                Born::Gone(End::Killed(libc::SIGKILL)) => (),
                Born::Gone(_) => return Err(Error::Unresumable("its new process ended early".into())),
                Born::Unprotected(_, what) | Born::Untraceable(_, what) => return Err(Error::Unresumable(what)),
            }
        }
        Err(Error::Unresumable("its new process was killed again and again".into()))
    }

    /// Files for the fresh process: a new session, and the store that is there or, from the beginning, an empty one.
    fn fresh_generation(&self, mode: u32) -> Result<Generation, Error> {
        let old = &self.generation;
        let session = self.folder.create_session("session")?;
        let store = match mode {
            mode::RESUME => old
                .store
                .try_clone()
                .map_err(|_| Error::Kernel("copy the store's descriptor", rustix::io::Errno::MFILE))?,
            _ => self.stores.create(0)?,
        };
        carry_over(old.control(), session.control());
        Generation::new(old.number, session, store)
    }

    fn take(&mut self, generation: Generation, pid: libc::pid_t) {
        self.generation = generation;
        self.pid = pid;
        self.anchor = 0;
        self.note_birth();
    }
}

/// What was counted, and what could not be preserved, stays so.
fn carry_over(old: &Control, new: &Control) {
    new.commits.store(old.commits.load(Acquire), Release);
    new.degradations.store(old.degradations.load(Acquire), Release);
    new.restored.store(old.restored.load(Acquire), Release);
    new.rollbacks.store(old.rollbacks.load(Acquire), Release);
    new.last_seq.store(old.last_seq.load(Acquire), Release);
}
