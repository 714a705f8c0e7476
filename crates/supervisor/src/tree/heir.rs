//! The process that a program began with has ended, and others of it live on: the oldest of them takes its place.
//!
//! Who waits for the program sees it end as its first process did. Under its name it goes on: what is shown of it, whom it is sent signals
//! for, and what is brought back, is its heir. The heir's session and store take the place of the first process's in the order in which those of a new
//! image do at an execve, so that whoever takes over from a supervisor that dies in the middle finds what it knows.

use super::{Member, Tree, ROOT};
use crate::end::End;
use crate::error::Error;
use crate::exec::Handover;
use crate::generation::file_name;
use crate::log::{Entry, Kind};
use crate::supervisor::Supervisor;
use crate::{orphans, reports};
use outlast_image::control::state;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// How long is waited for a process that is not ready to take the place yet, and how often one looks.
const PATIENCE: Duration = Duration::from_secs(5);
const PULSE: Duration = Duration::from_millis(1);

/// A process whose place another one is to take.
#[derive(Clone, Copy)]
pub struct Over {
    end: End,
    since: Instant,
}

/// Who takes the first process's place.
enum Heir {
    /// The member with this index.
    Member(usize),
    /// There may be one soon: it is just born, is becoming another program, or is being recovered.
    Soon,
    Nobody,
}

impl Supervisor {
    /// The program's first process has ended for good.
    pub(crate) fn is_over(&mut self, end: End) {
        self.over = Some(Over { end, since: Instant::now() });
    }

    /// Has another process take its place, if there is one. How the program has ended for who waits for it; none: this supervisor goes on.
    pub(crate) fn finish_or_pass_on(&mut self, over: Over) -> Option<End> {
        match self.pass_on(over.end) {
            Ok(Heir::Member(_)) => {
                self.over = None;
                if let Some(front) = self.front.take() {
                    step_back();
                    front.end(over.end);
                    return None;
                }
                // Whoever waits for this process waits no longer; only if no other one can be started.
                orphans::start_supervisor(self.folder.name(), &self.lock).is_ok().then_some(over.end)
            }
            Ok(Heir::Soon) if over.since.elapsed() < PATIENCE => {
                self.looks_at = Some(Instant::now() + PULSE);
                None
            }
            Ok(_) => Some(self.finish(over.end)),
            Err(e) => {
                self.log.add(&Entry::new(Kind::Degradation).cause(e.to_string()).pid(self.pid));
                Some(self.finish(over.end))
            }
        }
    }

    fn pass_on(&mut self, end: End) -> Result<Heir, Error> {
        let is_wanted = !self.kept && self.generation.control().stopping.load(Acquire) == 0;
        // A store on a disk is for one that is resumed from there; those of children lie in memory.
        if !is_wanted || self.meta.store.is_some() {
            return Ok(Heir::Nobody);
        }
        let Some(mut tree) = self.tree.take() else { return Ok(Heir::Nobody) };
        tree.leave_orphans(ROOT);
        let heir = tree.heir();
        let succeeded = match heir {
            Heir::Member(i) => self.succeed(&mut tree, i, end),
            _ => Ok(()),
        };
        self.tree = Some(tree);
        succeeded.map(|()| heir)
    }

    /// The process becomes the program's first one.
    fn succeed(&mut self, tree: &mut Tree, i: usize, end: End) -> Result<(), Error> {
        let number = self.meta.generation + 1;
        let theirs = &tree.members[i].supervisor;
        // What a program was told to keep and remove goes with its own anchor.
        self.end_keeping();
        self.drain_events();
        self.stores.link(&theirs.stores, number)?;
        self.folder
            .take(&theirs.folder, "session", &file_name("session", number))
            .inspect_err(|_| self.stores.remove(number))?;
        self.take_down();
        let Member { number: child, supervisor: heir, .. } = tree.members.remove(i);
        for member in tree.members.iter_mut().filter(|member| member.parent == Some(child)) {
            member.parent = Some(ROOT);
        }
        let ended = self.pid;
        let control = self.generation.control();
        self.meta.commits_before += control.commits.load(Acquire);
        self.meta.recoveries_before += reports::recoveries(control);
        self.meta.generation = number;
        self.meta.pid = heir.meta.pid;
        self.meta.first_ended = Some(end);
        self.generation = heir.generation.numbered(number);
        self.faults = None;
        (self.pid, self.anchor, self.anchor_lost) = (heir.pid, heir.anchor, heir.anchor_lost);
        (self.handover, self.injection_faults) = (Handover::None, heir.injection_faults);
        (self.recovering, self.postponed, self.shortage) = (heir.recovering, heir.postponed, heir.shortage);
        (self.is_stopped, self.is_killed, self.expected) = (heir.is_stopped, heir.is_killed, heir.expected);
        (self.count, self.command, self.committed) = (heir.count, heir.command, true);
        self.kin.join(heir.kin);
        self.looks_at = Some(Instant::now());
        self.looking.follow(self.pid);
        self.become_current();
        // Its files have other names now.
        let _ = heir.folder.clear();
        self.log.add(&Entry::new(Kind::PassedOn).cause(end.words()).pid(ended));
        self.decides.renewed();
        Ok(())
    }
}

/// Goes on in the background: whoever reads what this process might write waits for its end.
fn step_back() {
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    // Where there is none, the daemon's output has one writer more.
    if let Ok(nowhere) = nowhere {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
}

impl Tree {
    /// The oldest process that lives protected.
    fn heir(&self) -> Heir {
        let is_ready = |member: &&Member| {
            let its = &member.supervisor;
            let is_settled = !its.is_unborn && matches!(its.handover, Handover::None) && its.kin.is_alive(its.pid);
            is_settled && !its.is_killed && its.generation.control().state.load(Acquire) == state::PROTECTED
        };
        let may_be_soon = |member: &Member| {
            let standing = member.supervisor.generation.control().state.load(Acquire);
            !matches!(standing, state::SUSPENDED | state::EXITING | state::GIVEN_UP) && !member.supervisor.is_killed
        };
        let oldest = self.members.iter().filter(is_ready).map(|member| member.number).min();
        match self.members.iter().position(|member| Some(member.number) == oldest) {
            Some(i) => Heir::Member(i),
            None if self.members.iter().any(may_be_soon) => Heir::Soon,
            None => Heir::Nobody,
        }
    }

    /// Their parent has ended.
    pub(super) fn leave_orphans(&mut self, parent: u32) {
        self.members.iter_mut().filter(|member| member.parent == Some(parent)).for_each(Member::is_orphaned);
    }
}
