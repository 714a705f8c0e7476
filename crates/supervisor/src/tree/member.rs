//! One process of a tree.

use super::ready::Begun;
use crate::end::End;
use crate::error::Error;
use crate::exec::promote;
use crate::generation::Generation;
use crate::kin::Legacy;
use crate::launch::Command;
use crate::meta::{self, Meta};
use crate::options::Options;
use crate::orphans::newer_session;
use crate::processes;
use crate::program_folder::ProgramFolder;
use crate::session::Session;
use crate::stores::StorePlace;
use crate::supervisor::{Parts, Supervisor};
use libc::pid_t;
use outlast_image::children::{state as children, Child};
use outlast_image::control::{other_state, request, state, Control};
use outlast_image::inject::option;
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant, SystemTime};

/// How long a process may take to leave its protection behind.
const LEAVING: Duration = Duration::from_secs(1);
const PULSE: Duration = Duration::from_millis(1);
/// The parent of those whose own has ended.
const INIT: pid_t = 1;

/// A process of a program, but for the one that it began with.
pub struct Member {
    pub number: u32,
    /// Whose child it is; none: its parent has ended.
    pub parent: Option<u32>,
    pub supervisor: Supervisor,
    /// Whether its parent knows that it can be recovered.
    pub is_known: bool,
    /// What its process left that ended last.
    pub last: Legacy,
}

/// A process of a program whose supervisor has died.
pub struct Left {
    pub number: u32,
    folder: ProgramFolder,
    stores: StorePlace,
    session: Session,
    /// None: nothing has begun with it.
    meta: Option<Meta>,
}

impl Left {
    /// What is left in the folder of this name, if a process was there.
    pub fn of(root: &ProgramFolder, name: &str) -> Option<Self> {
        let number = name.strip_prefix("child.")?.parse().ok()?;
        let folder = root.folder(name).ok()?;
        let (meta, stores) = (Meta::read(&folder).ok(), StorePlace::beside(&folder).ok()?);
        // First: under its name may still be what the process was before it became another program.
        promote(&folder, &stores, meta.as_ref().map_or(0, |meta| meta.generation)).ok()?;
        let session = folder.open_session().ok()?;
        Some(Self { number, folder, stores, session, meta })
    }

    /// Has a process begun with it that is described?
    pub fn is_born(&self) -> bool {
        self.meta.is_some()
    }

    /// What a child can begin with.
    pub fn begun(self) -> Option<Begun> {
        let Self { number, folder, stores, session, .. } = self;
        let lock = folder.lock().ok()??;
        let store = stores.open().ok()?;
        Some(Begun { number, folder, lock, stores, session, store })
    }

    /// Is it a child of the process that has this session?
    pub fn is_child_in(&self, parent: &Session) -> bool {
        let lives = |child: &&Child| matches!(child.state.load(Acquire), children::EXPECTED | children::ALIVE);
        parent.children().iter().filter(lives).any(|child| child.member.load(Acquire) == self.number)
    }

    /// Watches it, as a child of `parent`. None: that cannot be.
    pub fn take_up(self, root: &Supervisor, parent: Option<u32>) -> Option<Member> {
        let Self { number, folder, stores, session, meta } = self;
        let mut meta = meta?;
        let lock = folder.lock().ok()??;
        let newer = newer_session(&folder);
        let argv: Vec<OsString> = meta.argv.iter().map(|arg| arg.to_os_string()).collect();
        let command = Command::new(&meta.exe.to_path(), &argv).ok()?;
        let decides = root.decides.for_another(folder.name(), &mut meta.options).ok()?;
        meta.supervisor = meta::Supervisor::this();
        let signals = root.signals.shared().ok()?;
        let generation = Generation::new(&folder, meta.generation, session, stores.open().ok()?).ok()?;
        let engine = Rc::clone(&root.engine);
        let parts = Parts { folder, lock, stores, meta, command, engine, signals, decides };
        let mut supervisor = Supervisor::new(parts, generation).ok()?;
        supervisor.kindred = root.kindred.clone();
        supervisor.sent = root.sent.clone();
        supervisor.follow_signals();
        supervisor.log = root.log.another().ok()?;
        supervisor.looks_at = Some(Instant::now());
        supervisor.committed = true;
        supervisor.adopted = true;
        supervisor.is_unborn = is_unborn(supervisor.generation.control());
        supervisor.may_choose_pid = root.may_choose_pid;
        if let Some(newer) = newer {
            supervisor.take_up_handover(newer).ok()?;
        }
        Some(Member { number, parent, supervisor, is_known: false, last: Legacy::default() })
    }
}

impl Member {
    /// A child of `parent` that was just born.
    pub fn new(parent: &Supervisor, number: u32, pid: pid_t, begun: Begun) -> Result<Self, Error> {
        let Begun { number: own, folder, lock, stores, session, store } = begun;
        let argv: Vec<OsString> = parent.meta.argv.iter().map(|arg| arg.to_os_string()).collect();
        let command = Command::new(&parent.meta.exe.to_path(), &argv)?;
        let mut options = Options { generations: None, sections: Vec::new(), ..parent.meta.options.clone() };
        // To begin one takes longer than most children live.
        options.bits |= option::NO_FAULT_LIST;
        let decides = parent.decides.for_another(folder.name(), &mut options).map_err(Error::Module)?;
        let meta = Meta {
            started: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
            options,
            store: None,
            supervisor: meta::Supervisor::this(),
            pid,
            generation: 0,
            commits_before: 0,
            recoveries_before: 0,
            going_back: None,
            encryption: None,
            changed: None,
            designated: None,
            policy: None,
            first_ended: None,
            ended: None,
            ..parent.meta.clone()
        };
        // Without a description nobody could take it over, and it is protected all the same.
        let _ = meta.write(&folder, &stores);
        let signals = parent.signals.shared().map_err(|e| Error::Kernel("copy a descriptor", e))?;
        let generation = Generation::new(&folder, 0, session, store)?;
        let engine = Rc::clone(&parent.engine);
        let parts = Parts { folder, lock, stores, meta, command, engine, signals, decides };
        let mut supervisor = Supervisor::new(parts, generation)?;
        supervisor.kindred = parent.kindred.clone();
        supervisor.sent = parent.sent.clone();
        supervisor.follow_signals();
        supervisor.log = parent.log.another()?;
        supervisor.pid = pid;
        supervisor.looks_at = Some(Instant::now());
        supervisor.committed = true;
        supervisor.may_choose_pid = parent.may_choose_pid;
        supervisor.adopted = parent.adopted;
        supervisor.is_unborn = is_unborn(supervisor.generation.control());
        // One that has ended by now is found so.
        let _ = supervisor.kin.adopt(pid);
        supervisor.generation.control().program_pid.store(pid, Release);
        Ok(Self { number: own, parent: Some(number), supervisor, is_known: false, last: Legacy::default() })
    }

    /// Is the process one of this member's: program or anchor?
    pub fn has(&self, pid: pid_t) -> bool {
        self.supervisor.pid == pid || pid > 0 && self.supervisor.generation.anchors().contains(&pid)
    }

    /// Is it this process whose stops its parent is told of? Not while it becomes another program.
    pub fn is_followed(&self, pid: pid_t) -> bool {
        self.supervisor.pid == pid && !self.supervisor.handover.is_tracing()
    }

    /// Sees to what its engine has to say; how it ended, if it has.
    pub fn attend(&mut self) -> Option<End> {
        let supervisor = &mut self.supervisor;
        supervisor.generation.bell.hear();
        supervisor.on_bell();
        if let Some(end) = supervisor.on_postponed() {
            return Some(end);
        }
        supervisor.count_kills();
        supervisor.look_at_threads();
        supervisor.look_at_program();
        None
    }

    pub fn note_end(&mut self, legacy: &Legacy) {
        self.last = legacy.clone();
    }

    /// Did it end before there was anything to recover it from? Then its parent makes it once more.
    pub fn is_stillborn(&self) -> bool {
        if self.supervisor.is_unborn {
            return true;
        }
        let (generation, control) = (&self.supervisor.generation, self.supervisor.generation.control());
        // One that is not protected has run, and what it became by an execve it became after its birth.
        let has_run = control.state.load(Acquire) == state::SUSPENDED || generation.number > 0;
        !has_run && control.anchor_pid.load(Acquire) == 0 && control.restored.load(Acquire) == 0
    }

    /// Its parent has ended.
    pub fn is_orphaned(&mut self) {
        self.parent = None;
        let control = self.supervisor.generation.control();
        control.parent.store(INIT, Release);
        let signal = control.death_signal.load(Acquire) as i32;
        if (1..32).contains(&signal) {
            self.supervisor.is_killed |= signal == libc::SIGKILL;
            self.supervisor.give(signal);
        }
    }

    /// Has the process run on without protection.
    pub fn let_go(&mut self) {
        let supervisor = &mut self.supervisor;
        let control = supervisor.generation.control();
        control.request.fetch_or(request::DETACH, AcqRel);
        let asked = Instant::now();
        loop {
            supervisor.pass_the_gate();
            let left = control.state.load(Acquire) == state::SUSPENDED;
            if left || !processes::is_running(supervisor.pid) || asked.elapsed() > LEAVING {
                break;
            }
            std::thread::sleep(PULSE);
        }
        supervisor.dismiss_anchors();
        self.clear();
    }

    /// Removes what it took.
    pub fn clear(&self) {
        // What cannot be removed goes with the program's folder.
        let _ = self.supervisor.folder.clear();
    }
}

/// Is it a child with its parent's memory, which has not become another program yet?
fn is_unborn(control: &Control) -> bool {
    control.other_state.load(Acquire) == other_state::SPAWNED && control.state.load(Acquire) != state::SUSPENDED
}
