//! The supervisor ends as the program did, so that whoever waits for it sees the program's own status.

use crate::end::End;

/// Ends this process: with the same exit status, or killed by the same signal.
pub fn depart(end: End) -> ! {
    match end {
        End::Exited(status) => std::process::exit(status),
        End::Killed(signal) => die_of(signal),
    }
}

fn die_of(signal: i32) -> ! {
    // SAFETY: plain system calls on structures of ours; a default disposition has no handler to be called.
    unsafe {
        // A core of the supervisor would be taken for the program's. The limit does not hold where cores go to a pipe.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &default, std::ptr::null_mut());
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut only, signal);
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        // Still here: the first process of a pid namespace cannot be killed by its own signals.
        libc::_exit(128 + signal)
    }
}
