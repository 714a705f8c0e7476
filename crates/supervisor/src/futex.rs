//! Futexes in memory shared with other processes.

use crate::foreign_filter;
use outlast_filter::needs::wish;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::thread::ClockId;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Wakes everyone who waits on the word, in any process.
pub fn wake(word: &AtomicU32) {
    // It fails only for a word that is not mapped, and a reference is.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}

/// Waits until the word may have changed from `seen`, or the time is over.
pub fn wait(word: &AtomicU32, seen: u32, at_most: Duration) {
    let time = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
    // Whatever ends the wait, the caller looks at the word again.
    let _ = futex::wait(word, Flags::empty(), seen, Some(&time));
}

/// Waits until one of the words may have changed from the value beside it.
///
/// # Errors
/// `NOSYS` before Linux 5.16, and where a filter of system calls refuses it.
pub fn wait_any<const N: usize>(words: [(&AtomicU32, u32); N]) -> Result<(), Errno> {
    let waits = words.map(|(word, seen)| {
        let mut wait = Wait::new();
        wait.val = seen.into();
        wait.uaddr = WaitPtr::new(std::ptr::from_ref(word).cast_mut().cast());
        wait.flags = WaitFlags::SIZE_U32;
        wait
    });
    if !foreign_filter::lets(wish::FUTEX_WAITV) {
        return Err(Errno::NOSYS);
    }
    match futex::waitv(&waits, WaitvFlags::empty(), None, ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS) => Err(Errno::NOSYS),
        Err(e) => Err(e),
    }
}
