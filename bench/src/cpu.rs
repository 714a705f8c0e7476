//! Processor time of other processes, to the nanosecond.

use crate::failure::{Outcome, Tried};
use rustix::process::Pid;
use std::time::Duration;

/// What a process has used so far, in all its threads. 0 for one that is gone.
pub fn used(pid: Pid) -> Duration {
    // The kernel's encoding of a process's clock (CPUCLOCK_SCHED): the complement of the pid, shifted, and 2.
    let clock = !pid.as_raw_nonzero().get() << 3 | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, or fails and writes none.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        _ => Duration::ZERO,
    }
}

/// What all processes that were waited for have used, directly or by those that waited for them.
pub fn used_by_ended() -> Outcome<Duration> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage; all zero is a valid one.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error()).tried("ask for the processor time of what ended");
        }
        usage.assume_init()
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok(time(usage.ru_utime) + time(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_some() {
        let own = rustix::process::getpid();
        let before = used(own);
        while used(own) == before {
            std::hint::spin_loop();
        }
        assert!(before > Duration::ZERO);
    }
}
