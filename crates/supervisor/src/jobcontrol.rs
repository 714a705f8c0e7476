//! The supervisor stops when the program stops, so that the shell sees a stopped job, and goes on with it.

use crate::processes;
use crate::supervisor::Supervisor;
use libc::pid_t;
use std::time::Duration;

/// How often a stopped job is looked at to see whether somebody continued the program alone.
const PULSE: Duration = Duration::from_millis(50);

impl Supervisor {
    /// Stops by the signal that stopped the program; returns when continued.
    pub(crate) fn follow_stop(&mut self, signal: i32) {
        let waker = start_waker(self.pid);
        stop_self(signal);
        if let Some(waker) = waker {
            self.kin.kill(waker);
        }
    }
}

/// Stops this process. A terminal's stop signal has no effect in an orphaned process group, as it had none there.
fn stop_self(signal: i32) {
    // SAFETY: plain system calls on sets of ours. The signal is one of those that stop; it has its default disposition
    // unless it was ignored from the start, and then it stops nobody.
    unsafe {
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut only, signal);
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::sigprocmask(libc::SIG_BLOCK, &only, std::ptr::null_mut());
    }
}

/// Starts a process that continues us when somebody continues, or kills, the program alone: stopped, we cannot notice.
fn start_waker(program: pid_t) -> Option<pid_t> {
    // SAFETY: plain system calls. The child may find locks of the bell's thread held, and takes none: what it calls
    // (reading a file of /proc) allocates, which glibc makes safe in a forked child.
    unsafe {
        let supervisor = libc::getpid();
        match libc::fork() {
            -1 => None,
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Continued before it has stopped, it would stop for good: it may be slower than this process.
                let is_over = || processes::is_stopped(supervisor) && !processes::is_stopped(program);
                while libc::getppid() == supervisor && !is_over() {
                    std::thread::sleep(PULSE);
                }
                if libc::getppid() == supervisor {
                    libc::kill(supervisor, libc::SIGCONT);
                }
                libc::_exit(0)
            }
            pid => Some(pid),
        }
    }
}
