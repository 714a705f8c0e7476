//! What the engine needs of its own process for a moment, whatever the program did to itself: its files in /proc, which
//! the kernel gives to root when a program drops privileges, and descriptor numbers above a lowered limit.

use crate::sys::{err, nr, syscall};

const PR_GET_DUMPABLE: u64 = 3;
const PR_SET_DUMPABLE: u64 = 4;
const RLIMIT_NOFILE: u64 = 7;

/// Holds the access; gives it up when dropped. No code of the program runs meanwhile.
pub struct Access {
    undumpable: bool,
    limit: Option<[u64; 2]>,
}

impl Access {
    /// `highest`: the first descriptor number that need not be allowed.
    pub fn take(highest: i32) -> Access {
        let mut limit = [0u64; 2];
        // SAFETY: asks for and raises the soft limit; a raise beyond the hard limit is refused.
        unsafe {
            let undumpable = syscall!(nr::PRCTL, PR_GET_DUMPABLE) != 1;
            if undumpable {
                syscall!(nr::PRCTL, PR_SET_DUMPABLE, 1);
            }
            let known = syscall!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, 0, limit.as_mut_ptr()) == 0;
            let low = known && limit[0] < highest as u64;
            let raised = [highest as u64, limit[1]];
            let changed = low && !err::is(syscall!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, raised.as_ptr(), 0));
            Access { undumpable, limit: changed.then_some(limit) }
        }
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        // SAFETY: sets back what `take` changed.
        unsafe {
            if let Some(limit) = self.limit {
                syscall!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, limit.as_ptr(), 0);
            }
            if self.undumpable {
                syscall!(nr::PRCTL, PR_SET_DUMPABLE, 0);
            }
        }
    }
}
