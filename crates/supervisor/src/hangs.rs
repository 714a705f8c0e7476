//! Threads that are looked at from outside, and what becomes of a program that hangs. Nothing of the program is stopped or slowed for that: the
//! engine's gate counts calls as it is, and the kernel keeps the time.

use crate::blocks::{self, Block};
use crate::decision::{Hang, Hung, Starvation, Stays};
use crate::instructions::Instructions;
use crate::locks::{self, Elsewhere};
use crate::log::{Entry, Kind};
use crate::probes::Probes;
use crate::processes;
use crate::sections::{self, OwnTime, Untold};
use crate::stacks;
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::control::{state, ThreadBlocks};
use outlast_image::event::phase;
use outlast_interfaces::pmc::{Activity, Count, Lock, Spent, Wait};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// When threads are looked at next, and what came of it.
#[derive(Default)]
pub struct Looking {
    due: Option<Instant>,
    /// The program's process is being ended for this.
    hung: Option<Hung>,
    elsewhere: Elsewhere,
    /// Breakpoints at functions that are sections, and the file that the program executed when they were wanted; none: it has none.
    probes: Option<Probes>,
    probed: Option<(u64, u64)>,
    untold: Untold,
    own_time: OwnTime,
    instructions: Instructions,
    /// How often in a row nothing was to be seen.
    blind: u32,
}

/// So often that is no process that is just ending.
const BLIND: u32 = 8;

impl Looking {
    /// The hang for which the process that has died was ended.
    pub fn take(&mut self) -> Option<Hung> {
        self.hung.take()
    }

    /// With breakpoints in this file, which the program is going to execute.
    pub fn with(probes: Option<Probes>, file: &Path) -> Self {
        Self { probed: probes.as_ref().and_then(|_| identity(file)), probes, ..Self::default() }
    }

    /// From now on with these, or with none, in the file that the process executes now.
    pub fn probe_with(&mut self, probes: Option<Probes>, pid: pid_t) {
        let file = format!("/proc/{pid}/exe");
        (self.probed, self.probes) = (probes.as_ref().and_then(|_| identity(Path::new(&file))), probes);
        self.follow(pid);
    }

    /// From now on it is this process that is looked at, which may have gone back.
    pub fn follow(&mut self, pid: pid_t) {
        self.untold.forget();
        self.instructions.are_others();
        if let Some(probes) = &self.probes {
            probes.follow(pid);
        }
    }

    /// The process is going to be another program.
    pub fn forget(&self) {
        if let Some(probes) = &self.probes {
            probes.forget_all();
        }
    }

    /// Has these functions probed in the file that this process executes now. Why that cannot be, once.
    fn probe(&mut self, sections: &[String], pid: pid_t) -> Option<String> {
        if sections.is_empty() {
            return None;
        }
        let file = format!("/proc/{pid}/exe");
        let identity = identity(Path::new(&file));
        let mut failure = None;
        if identity.is_some() && identity != self.probed {
            let begun = Probes::begin(sections, Path::new(&file));
            self.probed = identity;
            self.probes = begun.map_err(|why| failure = Some(why)).ok();
            self.follow(pid);
        }
        failure
    }

    /// What each of the program's threads has done; those of which that cannot be known are left out.
    fn counts(&mut self, pid: pid_t, blocks: &[Block]) -> Vec<Count> {
        let Self { elsewhere, instructions, .. } = self;
        let kernels = |number: u32| blocks.iter().find(|block| block.number == number).map(|block| block.thread);
        elsewhere.keep(|thread| blocks.iter().any(|block| block.thread == thread));
        let count = |&Block { thread, at, run, .. }: &Block| {
            let wait = locks::wait(elsewhere, pid, (thread, run), kernels);
            let (time, slices) = processes::schedule_of(pid, thread)?;
            let (spent, activity) = (Spent::time(Duration::from_nanos(time)), activity(pid, thread)?);
            Some(Count { thread, section: at.ip, run, spent, slices, activity, wait })
        };
        let mut counts: Vec<Count> = blocks.iter().filter_map(count).collect();
        let times: Vec<_> = counts.iter().map(|count| (count.thread, count.spent.time)).collect();
        if let Some(executed) = instructions.count(&times) {
            counts.retain_mut(|count| {
                count.spent.instructions = executed.get(&count.thread).copied();
                count.spent.instructions.is_some()
            });
        }
        counts
    }
}

fn identity(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).map(|file| (file.dev(), file.ino())).ok()
}

impl Supervisor {
    /// How long until threads are to be looked at.
    pub(crate) fn until_next_look(&self) -> Option<Duration> {
        self.looking.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Looks at them if it is time, and has a program end that hangs; what that means is decided when it is dead.
    pub(crate) fn look_at_threads(&mut self) {
        let Some(every) = self.decides.looks_every() else {
            self.looking.due = None;
            (self.looking.probes, self.looking.probed) = (None, None);
            return;
        };
        let now = Instant::now();
        if *self.looking.due.get_or_insert(now) > now {
            return;
        }
        self.looking.due = Some(now + every);
        let control = self.generation.control();
        let runs = control.state.load(Acquire) == state::PROTECTED && control.stopping.load(Acquire) == 0;
        if !runs || self.recovering.is_some() || self.postponed.is_some() || self.looking.hung.is_some() {
            return;
        }
        // The engine's own work is none of a section's: what was counted begins anew.
        if [phase::COMMIT, phase::FOLD, phase::RESTORE].contains(&control.phase.load(Acquire)) {
            let counts = self.looking.counts(self.pid, &blocks::read(self.pid, &control.threads));
            self.looking.own_time.look(&counts, true);
            self.decides.counted(&[], &[]);
            return;
        }
        // First where they are: what they compute afterwards is not held against them.
        let mut slots = sections::read(self.pid, &control.threads);
        let blocks = blocks::read(self.pid, &control.threads);
        if let Some(failure) = self.looking.probe(&self.meta.options.sections, self.pid) {
            self.log.add(&Entry::new(Kind::ModuleFailed).cause(format!("hang: {failure}")).pid(self.pid));
        }
        if let Some(probes) = &self.looking.probes {
            // These first: of what the program writes down only so much is taken.
            slots.splice(..0, sections::probed(probes, &blocks));
        }
        self.looking.untold.leave(&mut slots);
        let counts = self.looking.counts(self.pid, &blocks);
        if let Some(what) = self.looking.instructions.news().filter(|_| !counts.is_empty()) {
            self.log.add(&Entry::new(Kind::ModuleSaid).cause(format!("hang: {what}")).pid(self.pid));
        }
        self.looking.own_time.look(&counts, false);
        let sections = sections::of_threads(&slots, &blocks, &counts, &self.looking.own_time);
        self.looking.blind = if counts.is_empty() { self.looking.blind.saturating_add(1) } else { 0 };
        if self.looking.blind == BLIND {
            // Yama, for example, where another supervisor has taken over, which is not the program's parent.
            let what = "hang: the program's memory cannot be read here, so that no hang is found";
            self.log.add(&Entry::new(Kind::ModuleFailed).cause(what).pid(self.pid));
        }
        let (hang, starved) = (self.decides.counted(&counts, &sections), self.decides.starved());
        self.log_failures();
        if let Some(starved) = starved {
            self.log.add(&Entry::new(Kind::Starved).cause(starves(&starved)).pid(self.pid));
        }
        let Some(hang) = hang else { return };
        let Looking { untold, probes, .. } = &mut self.looking;
        if !untold.has_left(&slots, &blocks, probes.as_ref(), self.pid, &hang) {
            self.end_hung(&hang);
        }
    }

    fn end_hung(&mut self, hang: &Hang) {
        let Hang { section, has_moved, .. } = *hang;
        let stacks = stacks::of_hang(self.pid, hang, &self.generation.control().threads);
        self.log.add(
            &Entry::new(Kind::Hung)
                .cause(told(self.pid, &self.meta.options.sections, hang))
                .stacks(stacks)
                .pid(self.pid),
        );
        self.looking.hung = Some(Hung { section, has_moved });
        self.kin.end(self.pid);
    }
}

/// In the words of the log.
fn told(pid: pid_t, probed: &[String], hang: &Hang) -> String {
    let Hang { thread, section, .. } = *hang;
    match &hang.why {
        Stays::Computes { count, check } => {
            let (count, check) = (count.as_secs_f64(), check.as_secs_f64());
            format!("thread {thread} has computed for {count:.2} s since the call before {section:#x}, where {check:.2} s are enough")
        }
        Stays::Lingers { section, count, check } => {
            let (count, check) = (count.as_secs_f64(), check.as_secs_f64());
            let section = sections::name(pid, probed, *section);
            format!(
                "thread {thread} has computed for {count:.2} s in the section {section}, where {check:.2} s are enough"
            )
        }
        Stays::Deadlock(cycle) => {
            let waits = cycle.iter().map(|(thread, Wait { lock, at, owner })| {
                let lock = match lock {
                    Lock::Mutex => "mutex",
                    Lock::ReadWriteLock => "read-write lock",
                };
                format!("thread {thread} waits for the {lock} at {at:#x}, which {owner} has")
            });
            format!("a deadlock: {}", waits.collect::<Vec<_>>().join("; "))
        }
        Stays::Told(why) => format!("thread {thread}: {why}"),
    }
}

fn starves(starvation: &Starvation) -> String {
    let Starvation { thread, section, could_run, waited } = *starvation;
    let why = if could_run { "could run and has got no processor" } else { "waits for what cannot be interrupted" };
    let seconds = waited.as_secs_f64();
    format!("thread {thread}, since the call before {section:#x}, {why} for {seconds:.1} s; a recovery would not help")
}

/// Which of the program's threads wait for what another one has.
pub fn waits(pid: pid_t, blocks: &ThreadBlocks) -> Vec<(pid_t, Wait)> {
    let blocks = blocks::read(pid, blocks);
    let kernels = |number: u32| blocks.iter().find(|block| block.number == number).map(|block| block.thread);
    let wait = |block: &Block| {
        Some((block.thread, locks::wait(&mut Elsewhere::default(), pid, (block.thread, block.run), kernels)?))
    };
    blocks.iter().filter_map(wait).collect()
}

fn activity(pid: pid_t, thread: pid_t) -> Option<Activity> {
    // Those that are frozen, with the first version of control groups, are said to be where nothing can interrupt them.
    let is_frozen =
        || std::fs::read(format!("/proc/{pid}/task/{thread}/wchan")).is_ok_and(|place| place == b"__refrigerator");
    Some(match processes::state_of(pid, thread)? {
        'R' => Activity::Runs,
        'D' if !is_frozen() => Activity::Stuck,
        'D' | 'T' | 't' => Activity::Held,
        _ => Activity::Waits,
    })
}
