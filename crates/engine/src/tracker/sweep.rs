//! A look everywhere now and then, for what no source shows: others that write to the program's memory (a debugger,
//! process_vm_writev), devices. It takes a thousandth of the time, so the more memory the less often.

use crate::sys::tsc;

/// Ticks of the time stamp counter, some ten seconds, after which it is due however long the last look took: that may
/// have found, and saved, a lot.
const LATEST: u64 = 1 << 35;

/// See the module.
pub struct Sweep {
    allowed: bool,
    began: u64,
    ended: u64,
}

impl Sweep {
    pub const fn new(allowed: bool) -> Sweep {
        Sweep { allowed, began: 0, ended: 0 }
    }

    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.allowed
            && tsc().wrapping_sub(self.ended) > self.ended.wrapping_sub(self.began).saturating_mul(1024).min(LATEST)
    }

    pub fn begin(&mut self) {
        self.began = tsc();
    }

    pub fn end(&mut self) {
        self.ended = tsc();
    }
}
