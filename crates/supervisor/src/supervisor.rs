//! A program under watch, and the loop that watches it.

use crate::decision::{Decides, Met};
use crate::end::End;
use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Handover;
use crate::fault_list::FaultList;
use crate::forward::GroupSignals;
use crate::front::Front;
use crate::generation::Generation;
use crate::hangs::Looking;
use crate::keeping::Keeping;
use crate::kin::{Change, Kin};
use crate::launch::Command;
use crate::log::{Entry, Kind, Log};
use crate::meta::Meta;
use crate::postponed::Postponed;
use crate::program_folder::{Lock, ProgramFolder};
use crate::progress::Bar;
use crate::respawn::Recovering;
use crate::shortage::{Count, Shortage};
use crate::signals::Signals;
use crate::stores::StorePlace;
use crate::tree::{Expected, Kindred, Over, Sent, Tree};
use crate::{again, futex, oom_score, privileges, reports};
use libc::pid_t;
use outlast_image::control::{anchor_command, state};
use outlast_image::event::event_kind;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::time::Timespec;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// How long an anchor may take to remove hidden names.
const TIDYING: Duration = Duration::from_secs(2);

/// Everything the supervisor knows about its program.
pub struct Supervisor {
    pub(crate) folder: ProgramFolder,
    /// Held as long as this supervisor is the one.
    pub(crate) lock: Lock,
    pub(crate) stores: StorePlace,
    pub(crate) meta: Meta,
    pub(crate) log: Log,
    pub(crate) command: Command,
    pub(crate) engine: Rc<Engine>,
    /// The list of its page faults, if the kernel keeps one.
    pub(crate) faults: Option<FaultList>,
    pub(crate) signals: Signals,
    pub(crate) kin: Kin,
    pub(crate) generation: Generation,
    /// While the program becomes another one.
    pub(crate) handover: Handover,
    /// Injections in a row that failed at an execve.
    pub(crate) injection_faults: u32,
    /// The program's process.
    pub(crate) pid: pid_t,
    /// The anchor that was seen last; 0 if none was.
    pub(crate) anchor: pid_t,
    /// Whether it died, and the program was asked for another one.
    pub(crate) anchor_lost: bool,
    /// Whether a module that fails cannot take this process with it.
    bewares: bool,
    /// What led to this process beginning anew.
    pub(crate) failed_before: Vec<String>,
    /// Whether it took over from another: what it was started with is not ours.
    pub(crate) adopted: bool,
    /// Whether the engine has left the program alone, as a person had asked for.
    pub(crate) detached: bool,
    /// Whether there ever was a commit to recover from.
    pub(crate) committed: bool,
    /// Whether the kernel may let the anchor choose a process id.
    pub(crate) may_choose_pid: bool,
    pub(crate) decides: Box<dyn Decides>,
    pub(crate) group_signals: GroupSignals,
    /// Older generations, if they are wanted.
    pub(crate) keeping: Keeping,
    /// For whoever waits at a terminal of ours.
    pub(crate) bar: Bar,
    /// A respawn whose end the engine has not yet reported.
    pub(crate) recovering: Option<Recovering>,
    /// Whom the OOM killer had killed when that was looked at last.
    pub(crate) count: Option<(Count, Instant)>,
    /// Of what memory the process that died was short.
    pub(crate) shortage: Option<Shortage>,
    /// A recovery that waits for memory.
    pub(crate) postponed: Option<Postponed>,
    /// Whether the program could not be brought back while its state may still be good: everything of it stays.
    pub(crate) kept: bool,
    /// Whether a signal has stopped it, of whose stops another process of the tree is told: its successor is to be stopped as well.
    pub(crate) is_stopped: bool,
    /// At its threads.
    pub(crate) looking: Looking,
    /// Whether another process of the program has killed this one, and meant it.
    pub(crate) is_killed: bool,
    /// Whether the process has its parent's memory and has not become the program yet that it is to be: there is nothing to recover.
    pub(crate) is_unborn: bool,
    /// The other processes of a program that is a tree.
    pub(crate) tree: Option<Box<Tree>>,
    /// When there is something to be looked at that nobody tells of.
    pub(crate) looks_at: Option<Instant>,
    /// Signals that the program's processes send to each other.
    pub(crate) sent: Option<Rc<RefCell<Sent>>>,
    /// Those of them that the process may have got, and not taken note of yet.
    pub(crate) expected: Expected,
    /// The first process has ended, and another one is to take its place.
    pub(crate) over: Option<Over>,
    /// What the engines of a tree have in common.
    pub(crate) kindred: Option<Rc<Kindred>>,
    /// Who has left the program's group, so that it can have its number again.
    pub(crate) outside: Vec<pid_t>,
    /// Whom somebody waits for in this process's place.
    pub(crate) front: Option<Front>,
}

/// What a supervisor is made of, whoever starts it and why.
pub struct Parts {
    pub folder: ProgramFolder,
    pub lock: Lock,
    pub stores: StorePlace,
    pub meta: Meta,
    pub command: Command,
    pub engine: Rc<Engine>,
    /// Blocked before there was a second thread.
    pub signals: Signals,
    /// What decides about its deaths.
    pub decides: Box<dyn Decides>,
}

impl Supervisor {
    /// A supervisor that watches no process yet.
    pub fn new(parts: Parts, generation: Generation) -> Result<Self, Error> {
        let Parts { folder, lock, stores, meta, command, engine, signals, decides } = parts;
        Ok(Self {
            log: Log::open(&folder, meta.options.journal.as_deref())?,
            engine,
            faults: None,
            folder,
            lock,
            stores,
            meta,
            command,
            signals,
            kin: Kin::default(),
            handover: Handover::None,
            injection_faults: 0,
            pid: 0,
            anchor: 0,
            anchor_lost: false,
            bewares: false,
            failed_before: Vec::new(),
            adopted: false,
            detached: false,
            committed: generation.session.has_commit(),
            may_choose_pid: privileges::may_choose_pid(),
            decides,
            group_signals: GroupSignals::default(),
            keeping: Keeping::default(),
            bar: Bar::none(),
            recovering: None,
            count: None,
            shortage: None,
            postponed: None,
            kept: false,
            is_stopped: false,
            looking: Looking::default(),
            is_killed: false,
            is_unborn: false,
            tree: None,
            looks_at: None,
            sent: None,
            expected: Expected::default(),
            over: None,
            kindred: None,
            outside: Vec::new(),
            front: None,
            generation,
        })
    }

    /// Watches until the program has ended for good; returns how.
    pub fn watch(&mut self) -> End {
        // Only now: what this process starts inherits it.
        oom_score::exempt(std::process::id() as pid_t);
        self.beware_of_modules();
        self.tell_parts();
        loop {
            // What wakes us is taken note of first, and what it stands for looked at afterwards: nothing falls between.
            let mut is_due = self.tree.is_none() || self.is_due();
            while let Some(signal) = self.signals.next() {
                // The kernel's word about a child is not a person's wish.
                is_due |= signal.signal != libc::SIGCHLD || signal.code <= 0;
                self.forward(signal);
            }
            while let Some((pid, change)) = self.next_change() {
                let Some(change) = self.pass_to_tree(pid, change) else { continue };
                is_due = true;
                if self.over.is_none() {
                    self.on_change(pid, change).into_iter().for_each(|end| self.is_over(end));
                }
            }
            if let Some(over) = self.over {
                if let Some(end) = self.finish_or_pass_on(over) {
                    return end;
                }
            } else if is_due {
                if let Some(end) = self.attend() {
                    return end;
                }
                self.looks_at = self.patience().map(|patience| Instant::now() + patience);
                if self.over.is_some() {
                    continue;
                }
            }
            self.attend_tree();
            self.sleep();
        }
    }

    /// The next change of a process of the program. One that ended and whose parent is another process of the program stays until that has
    /// taken its status.
    fn next_change(&mut self) -> Option<(pid_t, Change)> {
        let Some(tree) = self.tree.take() else { return self.kin.change(|_| false) };
        let mut kin = std::mem::take(&mut self.kin);
        let change = kin.change(|pid| tree.is_awaited(self, pid));
        self.kin = kin;
        self.tree = Some(tree);
        change
    }

    /// Whether there is something to see to, apart from what signals tell of: its engine rings, or it is time to look.
    pub(crate) fn is_due(&self) -> bool {
        self.generation.bell.rings() || self.looks_at.is_some_and(|at| at <= Instant::now())
    }

    /// Sees to the program that it began with; or returns how that has ended.
    fn attend(&mut self) -> Option<End> {
        // Only now: a death takes back what the dead had asked for, and its successor may ask for the same.
        self.generation.bell.hear();
        self.on_bell();
        if self.detached && self.adopted {
            return Some(self.take_leave());
        }
        if let Some(end) = self.on_wish_to_go_back() {
            return Some(self.finish(end));
        }
        if let Some(end) = self.on_postponed() {
            self.is_over(end);
            return None;
        }
        self.on_wish_to_change();
        self.on_wish_to_upgrade();
        self.begin_keeping();
        self.count_kills();
        self.look_at_threads();
        self.look_at_program();
        None
    }

    /// From here on modules may fail in any way: the program has begun.
    pub(crate) fn beware_of_modules(&mut self) {
        if !std::mem::replace(&mut self.bewares, true) {
            again::prepare(self.folder.name(), self.lock.file(), &self.failed_before);
            self.decides.begin();
            self.log_failures();
        }
    }

    /// Waits until something happens.
    fn sleep(&self) {
        let files = [self.signals.file(), self.generation.bell.file()];
        let tree = self.tree.iter().flat_map(|tree| tree.files());
        let files: Vec<_> = files.into_iter().chain(self.kin.files()).chain(tree).collect();
        let mut fds: Vec<_> = files.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timespec = |t: Duration| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() };
        let next = self.looks_at.into_iter().chain(self.tree.iter().filter_map(|tree| tree.looks_at())).min();
        let timeout = next.map(|at| timespec(at.saturating_duration_since(Instant::now())));
        // Whatever ends the wait, everything is looked at again.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    pub(crate) fn on_change(&mut self, pid: pid_t, change: Change) -> Option<End> {
        match change {
            Change::Ended(end, legacy) if pid == self.pid => {
                if self.sent.is_some() && legacy.group > 0 {
                    self.generation.control().pgid.store(legacy.group, Release);
                }
                self.on_restored();
                self.keep_pending(&legacy);
                self.keep_expected();
                self.look_for_shortage(end, &legacy);
                self.inherit(legacy);
                self.on_death(end)
            }
            Change::Ended(..) => {
                self.on_other_death(pid);
                None
            }
            Change::Stopped(stop) if pid == self.pid && self.handover.is_tracing() => self.on_trace_stop(stop),
            Change::Stopped(stop) if pid == self.pid => {
                self.follow_stop(stop.signal);
                None
            }
            Change::Stopped(_) | Change::Continued => None,
        }
    }

    /// What the engine may have to say.
    pub(crate) fn on_bell(&mut self) {
        self.on_exec_request();
        self.on_credential_request();
        self.on_restored();
        self.on_anchor_served();
        self.on_suspended();
        self.drain_events();
    }

    /// A program that runs without protection needs no anchor.
    fn on_suspended(&mut self) {
        if self.anchor > 0 && self.generation.control().state.load(Acquire) == state::SUSPENDED {
            self.anchor = 0;
            self.dismiss_anchors();
        }
    }

    /// Copies the engine's events to the log.
    pub(crate) fn drain_events(&mut self) {
        let mut logged = self.generation.control().events_logged.load(Acquire);
        let mut rollbacks = Vec::new();
        for event in self.generation.session.events_since(&mut logged) {
            self.detached |= event.kind == event_kind::DETACHED;
            if let Some(entry) = reports::entry(&event) {
                self.log.add(&entry.pid(self.pid));
            }
            if event.kind == event_kind::ROLLBACK {
                rollbacks.push((event.arg as i32, event.time_ns));
            }
        }
        // Whoever takes over goes on from there.
        self.generation.control().events_logged.store(logged, Release);
        for (signal, at) in rollbacks {
            self.decides.signalled(signal, Met::WentBack(at));
            self.note_recovery(at);
        }
    }

    /// A process other than the program ended: its anchor, or one that nobody waits for.
    fn on_other_death(&mut self, pid: pid_t) {
        self.look_at_credentials();
        let control = self.generation.control();
        if pid == control.anchor_pid.load(Acquire) && control.state.load(Acquire) != state::SUSPENDED {
            self.ask_for_anchor();
        }
    }

    /// Has the kernel tell of the program's process: its page faults, and the sections that it is in.
    pub(crate) fn follow(&mut self) {
        if let Some(faults) = &self.faults {
            faults.follow(self.pid);
        }
        self.looking.follow(self.pid);
    }

    /// The process is another program now, or gone and its number somebody else's: none of the old one's business.
    pub(crate) fn follow_nobody(&mut self) {
        if let Some(faults) = &self.faults {
            faults.follow(0);
        }
        self.looking.follow(0);
    }

    /// The program is gone for good: its anchors go, its memory is given back, its log stays.
    pub(crate) fn finish(&mut self, end: End) -> End {
        self.end_tree();
        self.end_keeping();
        self.follow_nobody();
        self.drain_events();
        if self.kept {
            self.dismiss_anchors();
            return end;
        }
        let control = self.generation.control();
        self.meta.commits_before += control.commits.load(Acquire);
        self.meta.recoveries_before += reports::recoveries(control);
        self.meta.ended = Some(end);
        self.log.add(&Entry::new(Kind::Exit).cause(end.words()).seq(control.last_seq.load(Acquire)).pid(self.pid));
        self.clear_away();
        end
    }

    /// The program is nobody's any more, and not our child: nothing is left to be watched. The log stays.
    fn take_leave(&mut self) -> End {
        self.end_keeping();
        self.follow_nobody();
        let control = self.generation.control();
        self.meta.commits_before += control.commits.load(Acquire);
        self.meta.recoveries_before += reports::recoveries(control);
        self.clear_away();
        End::Exited(0)
    }

    /// Gives back what the program's protection took.
    pub(crate) fn clear_away(&mut self) {
        self.take_down();
        // A description that cannot be written any more leaves the old one, and the missing session tells the same.
        let _ = self.meta.write(&self.folder, &self.stores);
        self.folder.remove("session");
        self.stores.remove(0);
        let _ = self.stores.archive().map(|archive| archive.clear());
    }

    /// Ends the anchors, once they have done what is theirs to do.
    pub(crate) fn take_down(&mut self) {
        // An anchor that is not our child and was never reported can only be told.
        let command = &self.generation.control().anchor_command;
        command.store(anchor_command::EXIT, Release);
        futex::wake(command);
        self.await_tidying();
        self.dismiss_anchors();
    }

    /// Files that the program removed since its last commit have hidden names, which the anchor removes now.
    fn await_tidying(&self) {
        let hides = &self.generation.control().hides;
        if hides.load(Acquire) != 0 && !self.generation.holders().is_empty() {
            futex::wait(hides, 1, TIDYING);
        }
    }

    /// Ends the anchors of the generation that runs.
    pub(crate) fn dismiss_anchors(&mut self) {
        dismiss(&mut self.kin, &self.generation, self.pid);
    }

    /// Ends the anchors of a generation.
    pub(crate) fn dismiss(&mut self, generation: &Generation) {
        dismiss(&mut self.kin, generation, self.pid);
    }
}

/// Ends all of a generation but the program: anchors, also one whose birth nobody could report, and one made by a program
/// that is no child of ours since we looked.
fn dismiss(kin: &mut Kin, generation: &Generation, program: pid_t) {
    let control = generation.control();
    let reported = [control.anchor_pid.load(Acquire), control.next_anchor.load(Acquire)];
    for pid in generation.holders().into_iter().chain(reported).filter(|pid| *pid != program) {
        if kin.has(pid) || kin.holder(&generation.session, pid).is_some() {
            kin.kill(pid);
        }
    }
}
