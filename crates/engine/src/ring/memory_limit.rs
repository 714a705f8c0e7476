//! A ring's memory counts to what the program may lock (RLIMIT_MEMLOCK), which may be less than a ring takes. The kernel looks at the
//! limit once, when the ring is made.

use crate::sys::{err, nr, syscall};

const RLIMIT_MEMLOCK: u64 = 8;

/// Holds the limit as high as it may be; sets it back when dropped. No code of the program runs meanwhile.
pub struct Raised([u64; 2]);

impl Raised {
    /// None: it cannot be raised.
    pub fn try_now() -> Option<Raised> {
        let mut limit = [0u64; 2];
        // SAFETY: asks for the limit.
        let known = unsafe { syscall!(nr::PRLIMIT64, 0, RLIMIT_MEMLOCK, 0, limit.as_mut_ptr()) == 0 };
        let [soft, hard] = limit;
        (known && soft < hard && set([hard, hard])).then_some(Raised(limit))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        set(self.0);
    }
}

fn set(limit: [u64; 2]) -> bool {
    // SAFETY: the limit lies on the stack for the length of the call.
    unsafe { !err::is(syscall!(nr::PRLIMIT64, 0, RLIMIT_MEMLOCK, limit.as_ptr(), 0)) }
}
