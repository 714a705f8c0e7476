//! Waiting for a word in shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Returns when woken, when the word is not `value`, at a signal, or after the time: look again.
pub fn wait(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
    let time = at_most.map(|d| libc::timespec {
        tv_sec: d.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(d.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
    // SAFETY: the word is a live atomic and the kernel only compares it; the time outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, time) };
}

/// Wakes all that wait for the word; there are never more than two.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key and touches nothing.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
