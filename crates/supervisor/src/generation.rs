//! One image of the program: its session and its store. An execve makes a new one.

use crate::bell::Bell;
use crate::engine::Engine;
use crate::error::Error;
use crate::fault_list::FaultList;
use crate::inject::Injection;
use crate::kin::Kin;
use crate::options::Options;
use crate::presence::Presence;
use crate::processes;
use crate::program_folder::ProgramFolder;
use crate::session::Session;
use crate::stores::StorePlace;
use crate::successor;
use crate::tree::Kindred;
use libc::pid_t;
use outlast_image::control::Control;
use outlast_image::degradation::Degradation;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;

/// Session and store of one image of the program.
pub struct Generation {
    /// Gone before the session is.
    _presence: Presence,
    /// 0 at the start, one more at each execve.
    pub number: u32,
    pub session: Arc<Session>,
    pub store: OwnedFd,
    pub bell: Bell,
}

impl Generation {
    pub fn new(folder: &ProgramFolder, number: u32, session: Session, store: OwnedFd) -> Result<Self, Error> {
        let session = Arc::new(session);
        session.set_successor(&successor::of(folder));
        let bell =
            Bell::new(session.clone()).map_err(|e| Error::Kernel("start the thread that listens to the engine", e))?;
        Ok(Self { _presence: Presence::in_session(session.clone()), number, session, store, bell })
    }

    /// Makes the files of a generation.
    pub fn create(folder: &ProgramFolder, stores: &StorePlace, number: u32) -> Result<Self, Error> {
        let session = folder.create_session(&file_name("session", number))?;
        Self::new(folder, number, session, stores.create(number)?)
    }

    /// The same under another number.
    pub fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    pub fn control(&self) -> &Control {
        self.session.control()
    }

    /// What to inject for this generation.
    pub fn injection<'a>(
        &'a self,
        engine: &'a Engine,
        options: &'a Options,
        faults: Option<&'a FaultList>,
        mode: u32,
        known_pid: pid_t,
        children: Option<&'a Kindred>,
    ) -> Injection<'a> {
        Injection {
            engine,
            session: &self.session,
            store: self.store.as_fd(),
            options,
            faults,
            children,
            own_proc: None,
            mode,
            generation: self.number,
            known_pid: known_pid as u32,
            comm: None,
        }
    }

    /// Tells the engine's other half, and whoever takes over from us, about a new process of the program.
    pub fn note_birth(&self, pid: pid_t) {
        let control = self.control();
        control.pgid.store(processes::group_of(pid), Release);
        control.program_pid.store(pid, Release);
    }

    /// A process that had its parent's memory has become another program, which is the first that this generation is of.
    pub fn renew_for_execve(&self, pid: pid_t) {
        let control = self.control();
        for word in [&control.state, &control.exec_request, &control.exec_ready, &control.other_state] {
            word.store(0, Release);
        }
        control.degradations.store(0, Release);
        self.note_birth(pid);
    }

    /// Its anchor, if it has one that is ours and alive. In the middle of a change either of two may be the one that serves.
    pub fn anchor(&self, kin: &Kin) -> Option<pid_t> {
        self.anchors().into_iter().find(|pid| kin.has(*pid) && kin.is_alive(*pid))
    }

    /// The anchor, and the one that is to take its place; 0 where there is none.
    pub fn anchors(&self) -> [pid_t; 2] {
        let control = self.control();
        // What is settled meanwhile moves from the second to the first.
        let next = control.next_anchor.load(Acquire);
        [control.anchor_pid.load(Acquire), next]
    }

    /// Processes of ours that hold the session open: program and anchors, also those whose id nobody wrote down.
    pub fn holders(&self) -> Vec<pid_t> {
        let fd = self.session.inject_args().session_fd;
        let children = processes::children_of(std::process::id() as pid_t);
        children.into_iter().filter(|pid| processes::holds(*pid, fd, self.session.file())).collect()
    }

    /// Notes something that cannot be preserved; true if it was not known before.
    pub fn degrade(&self, degradation: Degradation) -> bool {
        self.control().degradations.fetch_or(degradation.bit(), AcqRel) & degradation.bit() == 0
    }
}

/// `store`, and `store.1` for the generation after it, until that one takes the place of the first.
pub fn file_name(base: &str, number: u32) -> String {
    match number {
        0 => base.into(),
        n => format!("{base}.{n}"),
    }
}
