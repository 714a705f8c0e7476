//! The processes that are watched: children, and, where an earlier supervisor started them, strangers.

use crate::control_group::Groups;
use crate::credentials::Credentials;
use crate::end::End;
use crate::oom_score;
use crate::processes;
use crate::session::Session;
use crate::status;
use crate::trace::Stop;
use libc::pid_t;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{pidfd_send_signal, Signal};
use rustix::time::Timespec;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended; how, if the kernel told.
    Ended(Option<End>, Legacy),
    Stopped(Stop),
    Continued,
}

/// What the kernel still tells about a process between its end and its reaping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Legacy {
    /// What it was allowed to do, if a signal killed it.
    pub credentials: Option<Credentials>,
    /// Signals that it had not taken, as a mask.
    pub signals: u64,
    /// Its process group.
    pub group: pid_t,
    /// Its control groups, where the kernel still tells.
    pub groups: Option<Groups>,
    /// How much the OOM killer preferred it to others.
    pub oom_score: Option<i32>,
    /// What it used, as wait4 tells it.
    pub usage: Box<[u64; 18]>,
}

impl Legacy {
    fn of(pid: pid_t) -> Self {
        let (credentials, signals) = (Credentials::of(pid), processes::pending_signals(pid));
        Self {
            credentials,
            signals,
            group: processes::group_of(pid),
            groups: Groups::of_dead(pid),
            oom_score: oom_score::of(pid),
            usage: Box::default(),
        }
    }
}

/// How long the end of a stranger that was killed may take.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// The processes of one program.
#[derive(Default)]
pub struct Kin {
    strangers: Vec<(pid_t, OwnedFd)>,
    /// Children that have ended and are not reaped: their numbers, and groups, stay theirs.
    unreaped: Vec<pid_t>,
}

impl Kin {
    /// Watches a process that may not be a child of ours.
    pub fn adopt(&mut self, pid: pid_t) -> Result<(), Errno> {
        // One that had the number before it is no longer watched, or the end of the one would be taken for the other's.
        self.forget(pid);
        if !is_child(pid) {
            self.strangers.push((pid, processes::open(pid)?));
        }
        Ok(())
    }

    /// The process, watched from now on, if it is one of those of the session.
    pub fn holder(&mut self, session: &Session, pid: pid_t) -> Option<pid_t> {
        // Looked at once it is watched: its number cannot have become another's since.
        (pid > 0 && self.adopt(pid).is_ok()).then_some(())?;
        let holder = status::holder(session, pid);
        if holder.is_none() {
            self.forget(pid);
        }
        holder
    }

    /// Watches what another one watched, too.
    pub fn join(&mut self, other: Self) {
        self.strangers.extend(other.strangers);
        self.unreaped.extend(other.unreaped);
    }

    /// Watches a process no longer whose end is known.
    pub fn forget(&mut self, pid: pid_t) {
        self.strangers.retain(|(known, _)| *known != pid);
    }

    /// Whether the process is one of ours, so that its id cannot have become another's.
    pub fn has(&self, pid: pid_t) -> bool {
        pid > 0 && (is_child(pid) || self.strangers.iter().any(|(known, _)| *known == pid))
    }

    /// Whether the process is ours and has not ended.
    pub fn is_alive(&self, pid: pid_t) -> bool {
        match self.strangers.iter().find(|(known, _)| *known == pid) {
            Some((_, pidfd)) => !is_readable(pidfd.as_fd()),
            None => pid > 0 && is_running_child(pid),
        }
    }

    /// The next change, if there is one. Reaps children that ended, but for those that ended by themselves and that `stays` names.
    pub fn change(&mut self, stays: impl Fn(pid_t) -> bool) -> Option<(pid_t, Change)> {
        if let Some((pid, code)) = self.changed_child() {
            let group = processes::group_of(pid);
            if code == libc::CLD_EXITED && stays(pid) {
                let legacy = Legacy { group, ..Legacy::default() };
                if let Some(ended) = look_at_end(pid, legacy) {
                    self.unreaped.push(pid);
                    return Some((pid, ended));
                }
            }
            let killed = code == libc::CLD_KILLED || code == libc::CLD_DUMPED;
            let legacy = if killed { Legacy::of(pid) } else { Legacy { group, ..Legacy::default() } };
            let change = take_change(pid, legacy);
            // A stranger that we trace tells its tracer, too.
            if matches!(change, Change::Ended(..)) {
                self.forget(pid);
            }
            return Some((pid, change));
        }
        self.stranger_change()
    }

    /// Reaps the children that ended a while ago and that `stays` does not name any more.
    pub fn reap(&mut self, stays: impl Fn(pid_t) -> bool) {
        self.unreaped.retain(|&pid| {
            let stays = stays(pid);
            if !stays {
                // SAFETY: plain system call; an ended child that is not reaped keeps its number.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
            }
            stays
        });
    }

    /// A child that ended, stopped or continued, and how, as `si_code` has it. The change stays to be taken.
    fn changed_child(&self) -> Option<(pid_t, i32)> {
        let change_of = |which, pid| {
            let info = wait(which, pid, libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED)?;
            // SAFETY: the kernel filled the structure for a child, if the id is not zero.
            let pid = unsafe { info.si_pid() };
            (pid > 0).then_some((pid, info.si_code))
        };
        let first = change_of(libc::P_ALL, 0)?;
        if !self.unreaped.contains(&first.0) {
            return Some(first);
        }
        // The kernel would tell of the same one again and again.
        let children = processes::children_of(std::process::id() as pid_t);
        children.into_iter().filter(|pid| !self.unreaped.contains(pid)).find_map(|pid| change_of(libc::P_PID, pid))
    }

    /// The next end of one that is no child.
    pub fn stranger_change(&mut self) -> Option<(pid_t, Change)> {
        let gone = self.strangers.iter().position(|(_, pidfd)| is_readable(pidfd.as_fd()))?;
        let (pid, pidfd) = self.strangers.swap_remove(gone);
        let legacy = Legacy::of(pid);
        Some((pid, Change::Ended(processes::end_of(pid, pidfd.as_fd()), legacy)))
    }

    /// Descriptors that become readable when a stranger ends; children are told by SIGCHLD.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.strangers.iter().map(|(_, pidfd)| pidfd.as_fd())
    }

    /// Has a process of ours end. Its end is a change as any other.
    pub fn end(&self, pid: pid_t) {
        match self.strangers.iter().find(|(known, _)| *known == pid) {
            Some((_, pidfd)) => drop(pidfd_send_signal(pidfd, Signal::KILL)),
            None if self.has(pid) => {
                // SAFETY: plain system call; a child that is not reaped keeps its number.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            None => (),
        }
    }

    /// Ends a process of ours that nobody needs any more, and waits until it is gone.
    pub fn kill(&mut self, pid: pid_t) {
        if !self.has(pid) {
            return;
        }
        match self.strangers.iter().find(|(known, _)| *known == pid) {
            Some((_, pidfd)) => {
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
                // One that cannot end, because the kernel holds it, is left to whoever reaps it.
                let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&PATIENCE));
                // One that we trace waits for us, too.
                // SAFETY: plain system call.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) };
            }
            // SAFETY: plain system calls; a child that is not reaped keeps its number.
            None => unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
            },
        }
        self.forget(pid);
    }
}

/// How a child ended that is to stay as it is, with what it used.
fn look_at_end(pid: pid_t, mut legacy: Legacy) -> Option<Change> {
    // SAFETY: zeroes are a valid siginfo_t, which the kernel fills, and `struct rusage` eighteen words.
    let status = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // The library's own function does not tell what was used.
        let r = libc::syscall(libc::SYS_waitid, libc::P_PID, pid, &mut info, flags, legacy.usage.as_mut_ptr());
        (r == 0 && info.si_pid() == pid).then(|| info.si_status())?
    };
    Some(Change::Ended(Some(End::Exited(status)), legacy))
}

/// Takes the change of a child that [`Kin::changed_child`] found; reaps it if it ended.
fn take_change(pid: pid_t, mut legacy: Legacy) -> Change {
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED | libc::__WALL;
    // SAFETY: `status` is an int of ours, and `struct rusage` eighteen words.
    let taken = unsafe { libc::wait4(pid, &mut status, flags, legacy.usage.as_mut_ptr().cast()) };
    match (End::of(status), Stop::of(status)) {
        (Some(end), _) if taken == pid => Change::Ended(Some(end), legacy),
        (_, Some(stop)) if taken == pid => Change::Stopped(stop),
        _ => Change::Continued,
    }
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())) == Ok(1)
}

fn is_child(pid: pid_t) -> bool {
    wait_status(pid).is_some()
}

fn is_running_child(pid: pid_t) -> bool {
    wait_status(pid) == Some(false)
}

/// For a child: whether it has ended. It stays to be reaped.
fn wait_status(pid: pid_t) -> Option<bool> {
    let info = wait(libc::P_PID, pid, libc::WEXITED)?;
    // SAFETY: the kernel filled the structure for a child, if the id is not zero.
    Some(unsafe { info.si_pid() } == pid)
}

/// Looks at children without taking what they tell; `None` if there is no such child.
fn wait(which: libc::idtype_t, pid: pid_t, what: i32) -> Option<libc::siginfo_t> {
    // SAFETY: zeroes are a valid siginfo_t, and the kernel fills it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = what | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        let r = libc::waitid(which, pid as libc::id_t, &mut info, flags);
        (r == 0).then_some(info)
    }
}
