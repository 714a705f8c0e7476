//! Why a running process cannot be attached to, and what to do about it. Nothing of the process was changed.

use crate::error::Error;
use displaydoc::Display;
use libc::pid_t;
use rustix::io::Errno;
use thiserror::Error;

/// Displayed as the second half of a line that begins with the process.
#[derive(Debug, Display, Error)]
pub enum Refusal {
    /// there is no such process
    Gone,
    /// it is this command itself, or one of its parents
    Own,
    /// it is the first process of this machine or container: when that dies the kernel ends all others; have it begin with `outlast run`
    First,
    /// it is none of your programs, or one of the kernel's threads; only root may attach to others' programs
    Foreign,
    /// the kernel forbids to trace it: it has, or had, rights of its own; only root may attach to it
    Forbidden,
    /// kernel.yama.ptrace_scope is {0} here, and forbids to trace what one has not started; root may attach, or set it to 0
    Yama(u32),
    /// it is stopped; continue it first (`kill -CONT {0}`)
    StoppedByNow(pid_t),
    /// it was just stopped by a signal; continue it first
    Stopped,
    /// it does not stop: the kernel holds it (disk, NFS, vfork?); try again later
    DoesNotStop,
    /// it takes one signal after the other; try again later
    Busy,
    /// it waits in a call that was stopped before, of which nobody can tell any more which it is; try again when that is over
    StoppedBefore,
    /// process {0} traces it; have that one detach first
    Traced(pid_t),
    /// it is protected already, or was; `outlast ps` shows it
    Protected,
    /// it has {0} threads, which are more than outlast protects
    Threads(usize),
    /// it runs 32-bit code, which outlast does not protect
    ForeignAbi,
    /// it is in another pid or user namespace (a container); run `outlast attach` there
    Namespace,
    /// it sees no /proc, which outlast needs
    ProcHidden,
    /// it has the rights of several users, or of its file; start it with `outlast run`
    Mixed,
    /// it has mounts, a root, a network or a security label of its own; it is protected when it begins anew
    Elsewhere,
    /// whoever watched it would have rights that it has not; it is protected when it begins anew
    Rights,
    /// it is under filters of system calls (seccomp) that outlast does not know; start it with `outlast run`
    Filters,
    /// it shares all of its memory with its parent
    SharedMemory,
    /// it has a shadow stack, of which outlast knows nothing
    ShadowStack,
    /// it has {0}, which cannot be preserved in a program that runs already; start it with `outlast run`
    Has(&'static str),
    /// it maps {0}, which was removed or replaced; restart it with `outlast run`
    Removed(String),
    /// cannot {0}: {1}; it runs on as before
    Kernel(&'static str, Errno),
    /// {0}: it runs on as before
    Engine(String),
}

impl Refusal {
    /// Why tracing is forbidden.
    pub fn forbidden() -> Self {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        match scope.and_then(|scope| scope.trim().parse().ok()) {
            Some(scope @ 1..) => Self::Yama(scope),
            _ => Self::Forbidden,
        }
    }

    /// In the words of the command.
    pub fn of(self, pid: pid_t) -> Error {
        Error::NotAttached(pid, self.to_string())
    }
}
