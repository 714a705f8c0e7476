//! Executions are let go: at once, or when a thread of their own has seen to them, or after a while, whatever that thread does.

use crate::attaching::{attach, Said};
use crate::deadline::Deadline;
use crate::execs::{Execs, Held};
use crate::executing::Executing;
use crate::follow::follow;
use crate::interposing::{interpose, Executed, Outcome};
use crate::process::{self, identity, Ours};
use crate::seats::{Seat, Seats};
use crate::tell::{tell, PROTECTED, UNPROTECTED};
use crate::units::Units;
use libc::pid_t;
use outlast_policy::{Policies, Subject};
use outlast_supervisor::say::say;
use outlast_supervisor::switch::Whose;
use outlast_supervisor::trace::Fault;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// What all threads know.
pub struct Watching {
    pub execs: Arc<Execs>,
    policies: Mutex<Arc<Policies>>,
    seats: Arc<Seats>,
    outlast: Arc<Ours>,
    units: Units,
    /// While this file is there everything is let go.
    switch: PathBuf,
    /// Goes on as long as executions are let go.
    beats: AtomicU64,
    /// Held while programs that run are seen to: what was said of some.
    following: Mutex<Said>,
    /// Shared by threads that are in the middle of a process's first instructions: should the daemon end then, that would end, too.
    interposing: RwLock<()>,
}

/// An execution that a thread of its own sees to.
struct Seen {
    held: Held,
    path: PathBuf,
    since: Instant,
    /// The thread while it attaches to the process; otherwise 0.
    attaching: AtomicI32,
}

/// How long any execution is held at most.
const HELD: Duration = Duration::from_secs(1);
/// How often those are looked at that are held, and whether there are new ones.
const PULSE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

impl Watching {
    pub fn new(execs: Execs, outlast: Arc<Ours>, switch: PathBuf) -> Self {
        Self {
            execs: Arc::new(execs),
            policies: Mutex::default(),
            seats: Arc::default(),
            outlast,
            units: Units::begin(),
            switch,
            beats: AtomicU64::new(0),
            following: Mutex::default(),
            interposing: RwLock::default(),
        }
    }

    pub fn follow(&self, policies: Policies) {
        self.units.follow(policies.of_administrator());
        *self.policies() = Arc::new(policies);
    }

    /// Has programs follow that run already, and others protected that policies have come to designate, one reading after the other, while this goes on.
    pub fn have_programs_follow(self: &Arc<Self>) {
        let this = Arc::clone(self);
        // Where there is no thread to be had they follow the next time.
        let _ = thread::Builder::new().name("following".into()).spawn(move || {
            let mut said = this.following.lock().unwrap_or_else(PoisonError::into_inner);
            let policies = Arc::clone(&this.policies());
            follow(&policies);
            if !Whose::All(&this.switch).is_off() {
                attach(&policies, &this.outlast, &mut said);
            }
        });
    }

    fn policies(&self) -> MutexGuard<'_, Arc<Policies>> {
        // Whoever held it only copied or replaced what it points to.
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether executions were let go, or could have been, since this was asked last.
    pub fn is_responsive(&self) -> bool {
        self.beats.swap(0, Relaxed) > 0
    }

    /// From when this returns until its result is dropped nothing is done to any process; a hanging thread is not waited for for long.
    pub fn pause(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        let began = Instant::now();
        loop {
            match self.interposing.try_write() {
                Ok(pause) => return Some(pause),
                Err(_) if began.elapsed() > HELD => return None,
                Err(_) => thread::sleep(PULSE[0]),
            }
        }
    }

    /// Lets executions go, for ever. Here nothing is done that may take long: no file is looked at but those of /proc.
    pub fn watch(self: Arc<Self>, mut deadline: Deadline) {
        let mut seen: Vec<(Arc<Seen>, bool)> = Vec::new();
        loop {
            let pulse = PULSE[usize::from(seen.is_empty())];
            let timeout = Timespec { tv_sec: 0, tv_nsec: pulse.subsec_nanos().into() };
            let file = self.execs.file();
            let _ = poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout));
            self.beats.fetch_add(1, Relaxed);
            // Should this fail, the daemon is killed before it can hold others up.
            let _ = deadline.put_off();
            for held in Execs::held(&self.execs).unwrap_or_default() {
                let _ = deadline.put_off();
                seen.extend(self.see_to(held).map(|seen| (seen, false)));
            }
            seen.retain_mut(|(seen, was_waiting)| {
                // The kernel has it wait for the process, which waits for us: it is the interpreter of a script that is opened.
                let waits = process::sleeps(seen.attaching.load(Relaxed));
                if (waits && *was_waiting) || seen.since.elapsed() > HELD {
                    seen.held.let_go();
                }
                *was_waiting = waits;
                !seen.held.is_let_go()
            });
        }
    }

    /// Lets it go, or has a thread do so.
    fn see_to(self: &Arc<Self>, held: Held) -> Option<Arc<Seen>> {
        let (path, user) = self.may_be_meant(&held)?;
        let Some(seat) = Seats::take(&self.seats, user) else {
            say(format_args!(
                "{}: process {} runs without: user {user} begins too many",
                path.display(),
                held.thread()
            ));
            return None;
        };
        let seen = Arc::new(Seen { held, path, since: Instant::now(), attaching: AtomicI32::new(0) });
        let (this, of_thread) = (Arc::clone(self), Arc::clone(&seen));
        // Where there is no thread to be had it is let go, as any other.
        thread::Builder::new().spawn(move || this.decide(&of_thread, seat)).ok().map(|_| seen)
    }

    /// Quickly, for it goes for every execution that is seen: its path and its user.
    fn may_be_meant(&self, held: &Held) -> Option<(PathBuf, u32)> {
        let (thread, path) = (held.thread(), held.path()?);
        let policies = Arc::clone(&self.policies());
        // Where that file lies nothing hangs: in memory.
        if thread <= 0 || !policies.may_protect(&path) || Whose::All(&self.switch).is_off() {
            return None;
        }
        // Those that outlast protects are traced by their supervisor.
        let user = process::user_of_untraced(thread)?;
        // An entry without an executable is about files anywhere: whoever executes in another control group is not held up for it.
        let cgroup = process::control_group(thread)?;
        let subject = Subject { executable: &path, uid: user, cgroup: &cgroup };
        policies.may_protect_for(&subject).then_some((path, user))
    }

    /// outlast itself starts programs natively where it cannot protect them.
    fn is_ours(&self, thread: pid_t) -> bool {
        let runs = process::executable(thread);
        runs == self.outlast.identity || runs == identity(&self.outlast.path)
    }

    /// Waits until the process has become the program, decides, and acts.
    fn decide(&self, seen: &Seen, _seat: Seat) {
        let thread = seen.held.thread();
        let path = seen.path.display();
        let fields = |pid: pid_t| vec![("OUTLAST_EXE", path.to_string()), ("OUTLAST_PID", pid.to_string())];
        let lacks = |pid: pid_t, why: String| {
            let fields = fields(pid).into_iter().chain([("OUTLAST_CAUSE", why.clone())]).collect();
            tell(&UNPROTECTED, fields, format_args!("{path}: process {pid} runs without: {why}"));
        };
        let there = seen.held.file().and_then(|file| identity(process::descriptor(file)));
        let Some(identity) = there.filter(|_| !self.is_ours(thread)) else {
            seen.held.let_go();
            return;
        };
        // SAFETY: plain system call.
        seen.attaching.store(unsafe { libc::gettid() }, Relaxed);
        let executing = Executing::trace(thread);
        seen.attaching.store(0, Relaxed);
        if !seen.held.let_go() {
            // Too late to be sure of it; the end of this thread leaves the process alone.
            if seen.since.elapsed() > HELD {
                lacks(thread, "attaching to it took too long".into());
            }
            return;
        }
        let pid = match executing {
            // Somebody else traces it.
            Err(e) => return lacks(thread, format!("cannot trace it: {e}")),
            Ok(executing) => match executing.wait() {
                Ok(Some(pid)) => pid,
                Ok(None) | Err(Fault::Gone(_)) => return,
                Err(fault) => return lacks(thread, fault.to_string()),
            },
        };
        let policies = Arc::clone(&self.policies());
        let executed = Executed { path: seen.path.clone(), identity };
        let _interposing = self.interposing.read();
        match interpose(pid, &executed, &policies, &self.outlast) {
            Outcome::NotMeant => (),
            Outcome::Protected(place) => {
                if let Some(cgroup) = process::control_group(pid) {
                    self.units.protected(&seen.path, &cgroup);
                }
                let fields = fields(pid).into_iter().chain([("OUTLAST_POLICY", place.clone())]).collect();
                tell(&PROTECTED, fields, format_args!("{path}: process {pid} is protected, by {place}"));
            }
            Outcome::Unprotected(place, why) => {
                let more = [("OUTLAST_POLICY", place.clone()), ("OUTLAST_CAUSE", why.clone())];
                let line =
                    format_args!("{path}: process {pid} runs unprotected, although {place} wants it protected: {why}");
                tell(&UNPROTECTED, fields(pid).into_iter().chain(more).collect(), line);
            }
        }
    }
}
