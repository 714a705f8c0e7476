//! A program that runs, by itself or protected.

use crate::conditions::Conditions;
use crate::failure::{Failure, Outcome, Tried};
use outlast_image::layout::SESSION_LEN;
use outlast_supervisor::session::Session;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// How often something that is waited for is looked at.
const PULSE: Duration = Duration::from_micros(200);
/// No program that is measured runs longer.
pub const LIMIT: Duration = Duration::from_secs(120);

/// See the module. One that is dropped while it runs is ended.
pub struct Running {
    child: Child,
    name: String,
    /// Its folder in outlast's state, if it is protected.
    folder: Option<PathBuf>,
    session: Option<Session>,
    ended: bool,
}

impl Running {
    pub fn new(child: Child, name: String, folder: Option<PathBuf>) -> Self {
        Self { child, name, folder, session: None, ended: false }
    }

    /// Commits and their bytes once there is one: it holds the program as it was executed. The largest is counted from then on.
    pub fn first_commit(&mut self) -> Outcome<[u64; 2]> {
        let until = Instant::now() + LIMIT;
        loop {
            let control = self.session()?.control();
            let commits = control.commits.load(Acquire);
            if commits > 0 {
                control.log_largest.store(0, Release);
                return Ok([commits, control.log_bytes.load(Acquire)]);
            }
            if Instant::now() > until {
                return Err(Failure::TooLong("the first commit".into(), LIMIT.as_secs()));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The session of a protected program, once there is one.
    pub fn session(&mut self) -> Outcome<&Session> {
        let folder = self.folder.clone().ok_or_else(|| Failure::Unprotected(self.name.clone()))?;
        let until = Instant::now() + LIMIT;
        while self.session.is_none() {
            self.session = map(&folder.join("session"));
            if self.session.is_none() {
                self.fail_if_ended()?;
                self.fail_if_late(until)?;
                std::thread::sleep(PULSE);
            }
        }
        self.session.as_ref().ok_or_else(|| Failure::Unprotected(self.name.clone()))
    }

    /// Where a protected program's session and store are.
    pub fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(""))
    }

    /// The program's own process.
    pub fn program_pid(&mut self) -> Outcome<Pid> {
        let pid = match self.folder {
            None => self.child.id() as i32,
            Some(_) => self.session()?.control().program_pid.load(Acquire),
        };
        Pid::from_raw(pid).ok_or_else(|| Failure::Unreadable(self.name.clone(), format!("process id {pid}")))
    }

    /// The process that was started: the program, or the one that watches it.
    pub fn outer_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The program, and what belongs to its protection.
    pub fn processes(&mut self) -> Outcome<Vec<Pid>> {
        let mut all = vec![self.outer_pid()];
        if self.folder.is_some() {
            let control = self.session()?.control();
            let pids = [&control.program_pid, &control.anchor_pid].map(|pid| Pid::from_raw(pid.load(Acquire)));
            all.extend(pids.into_iter().flatten());
        }
        Ok(all)
    }

    /// Waits for a file that the program makes when it is ready, or done.
    pub fn wait_for_file(&mut self, path: &Path) -> Outcome<String> {
        let until = Instant::now() + LIMIT;
        loop {
            if let Ok(text) = std::fs::read_to_string(path) {
                return Ok(text);
            }
            // Asked for early: an ended program's session is gone.
            if self.folder.is_some() {
                self.session()?;
            }
            self.fail_if_ended()?;
            self.fail_if_late(until)?;
            std::thread::sleep(PULSE);
        }
    }

    /// Waits for its end, which must be a success; tells under what circumstances it ran. Of one that was gone before it
    /// could be looked at they are unknown, as of a native one.
    pub fn finish(mut self) -> Outcome<Conditions> {
        if self.folder.is_some() {
            match self.session() {
                Err(Failure::Ended(_, status, _)) if status.success() => return Ok(Conditions::default()),
                other => other.map(|_| ())?,
            }
        }
        let status = self.wait()?;
        self.must_succeed(status)?;
        self.conditions()
    }

    /// An error if `status` is one.
    pub fn must_succeed(&mut self, status: ExitStatus) -> Outcome<()> {
        match status.success() {
            true => Ok(()),
            false => Err(self.ended_with(status)),
        }
    }

    /// Waits for its end, whatever it is.
    pub fn wait(&mut self) -> Outcome<ExitStatus> {
        let fd = self.pidfd()?;
        let limit = Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)) {
            Ok(0) => Err(Failure::TooLong(self.name.clone(), LIMIT.as_secs())),
            Err(e) => Err(e).tried("wait for a program"),
            Ok(_) => {
                self.ended = true;
                self.child.wait().tried("wait for a program")
            }
        }
    }

    /// A descriptor that becomes readable when the outer process has ended.
    pub fn pidfd(&self) -> Outcome<OwnedFd> {
        pidfd_open(self.outer_pid(), PidfdFlags::empty()).tried("open a process")
    }

    /// Under what circumstances a protected program runs.
    pub fn conditions(&self) -> Outcome<Conditions> {
        match &self.session {
            None => Ok(Conditions::default()),
            Some(session) => Conditions::of(session),
        }
    }

    fn fail_if_ended(&mut self) -> Outcome<()> {
        match self.child.try_wait().tried("look after a program")? {
            None => Ok(()),
            Some(status) => {
                self.ended = true;
                Err(self.ended_with(status))
            }
        }
    }

    fn ended_with(&mut self, status: ExitStatus) -> Failure {
        let mut said = String::new();
        if let Some(errors) = &mut self.child.stderr {
            // What it said is an addition; without it the status still tells.
            let _ = errors.read_to_string(&mut said);
        }
        let said = said.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        Failure::Ended(self.name.clone(), status, said)
    }

    fn fail_if_late(&self, until: Instant) -> Outcome<()> {
        match Instant::now() < until {
            true => Ok(()),
            false => Err(Failure::TooLong(self.name.clone(), LIMIT.as_secs())),
        }
    }
}

fn map(path: &Path) -> Option<Session> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    // One that is still being made is shorter, and must not be touched beyond its end.
    let whole = file.metadata().ok()?.len() >= SESSION_LEN;
    let session = Session::map(whole.then_some(file)?.into()).ok()?;
    session.is_formatted().then_some(session)
}

impl Drop for Running {
    /// The watcher first: it would bring back what is ended before it. What it leaves behind would fill the memory.
    fn drop(&mut self) {
        if !self.ended {
            self.end();
        }
        if let Some(folder) = &self.folder {
            // What cannot be removed goes with the workshop.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Running {
    fn end(&mut self) {
        let control = self.session.as_ref().map(Session::control);
        let kin = control.map(|c| [&c.program_pid, &c.anchor_pid].map(|pid| pid.load(Acquire)));
        let supervisor = self.child.id();
        // Stopped first: a supervisor that lives would bring back what is ended here, an anchor that lives a supervisor.
        let stop = |pid| rustix::process::kill_process(pid, rustix::process::Signal::STOP);
        let _ = Pid::from_raw(supervisor as i32).map(stop);
        for pid in kin.into_iter().flatten().filter(|pid| is_child_of(*pid, supervisor)).filter_map(Pid::from_raw) {
            // Gone already is as good.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let (_, _) = (self.child.kill(), self.child.wait());
    }
}

/// Whether the number is still that of a process which `parent` watches.
fn is_child_of(pid: i32, parent: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let found = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
    found == Some(&*parent.to_string())
}
