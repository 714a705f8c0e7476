//! What a thread waits for, and who has it: read from outside, of locks of the GNU C library, which note their owner.

use crate::processes::line_of;
use crate::remote;
use libc::pid_t;
use outlast_interfaces::pmc::{Lock, Wait};
use std::collections::BTreeMap;

/// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
const FLAGS: u64 = 128 | 256;
const WAITING: [u64; 4] = [
    libc::FUTEX_WAIT as u64,
    libc::FUTEX_WAIT_BITSET as u64,
    libc::FUTEX_LOCK_PI as u64,
    13, // FUTEX_LOCK_PI2
];

/// Threads that were seen in other calls than those that wait for a lock: while they make the same call they need no second look.
#[derive(Default)]
pub struct Elsewhere(BTreeMap<pid_t, Seen>);

/// In the call with this number, so often in a row.
struct Seen {
    run: u64,
    times: u32,
}

impl Elsewhere {
    /// Once might be a call that the engine makes before the program's.
    const SURE: u32 = 2;

    /// Only these threads are left.
    pub fn keep(&mut self, is_left: impl Fn(pid_t) -> bool) {
        self.0.retain(|thread, _| is_left(*thread));
    }

    /// The address of the futex that a thread sleeps at, without a time-out. `run`: how many calls it has made.
    fn futex(&mut self, pid: pid_t, thread: pid_t, run: u64) -> Option<u64> {
        let seen = self.0.entry(thread).or_insert(Seen { run, times: 0 });
        if seen.run == run && seen.times >= Self::SURE {
            return None;
        }
        let call = line_of(format!("/proc/{pid}/task/{thread}/syscall"))?;
        let futex = futex_of(&call);
        let is_elsewhere = futex.is_none() && call.starts_with(|first: char| first.is_ascii_digit());
        *seen = Seen { run, times: if is_elsewhere && seen.run == run { seen.times + 1 } else { 0 } };
        futex
    }
}

/// From what the kernel says of a call: its number, six arguments, stack pointer and address.
fn futex_of(call: &str) -> Option<u64> {
    let mut fields = call.split_ascii_whitespace();
    let number: i64 = fields.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let [at, operation, _, timeout] = [argument()?, argument()?, argument()?, argument()?];
    let waits = number == libc::SYS_futex && WAITING.contains(&(operation & !FLAGS)) && timeout == 0;
    waits.then_some(at)
}

/// What the lock at a futex is, and who has it. `kernels`: what the kernel calls the thread that has this number in the program.
fn owned(pid: pid_t, at: u64, kernels: impl Fn(u32) -> Option<pid_t>) -> Option<Wait> {
    let words = |at: u64| {
        let mut bytes = [0; 28];
        remote::read_memory(pid, at, &mut bytes).ok()?;
        Some(std::array::from_fn(|n| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[4 * n + byte]))))
    };
    let wait = |lock, at, owner: Option<u32>| Some(Wait { lock, at, owner: kernels(owner?)? });
    wait(Lock::Mutex, at, mutex_owner(&words(at)?)).or_else(|| {
        // A thread waits at the word for the phase, or at the one for writers.
        let starts = [8, 12].into_iter().filter_map(|offset| at.checked_sub(offset));
        starts.into_iter().find_map(|start| wait(Lock::ReadWriteLock, start, writer(&words(start)?)))
    })
}

/// What a thread waits for, that another one of the same program has.
pub fn wait(
    elsewhere: &mut Elsewhere,
    pid: pid_t,
    (thread, run): (pid_t, u64),
    kernels: impl Fn(u32) -> Option<pid_t>,
) -> Option<Wait> {
    owned(pid, elsewhere.futex(pid, thread, run)?, kernels)
}

/// The owner of a `pthread_mutex_t`: lock, count, owner, users, kind.
fn mutex_owner(&[lock, _, owner, _, kind, ..]: &[u32; 7]) -> Option<u32> {
    /// Types, and whether it is robust, inherits priorities, protects by them, is shared, or elides.
    const KINDS: u32 = 0x3ff;
    /// `FUTEX_WAITERS` and `FUTEX_OWNER_DIED`.
    const MARKS: u32 = 0xc000_0000;
    // Contended: 2, or the owner's own number where it is robust or the kernel serves it.
    let is_contended = lock == 2 || lock & !MARKS == owner;
    (is_contended && owner != 0 && kind & !KINDS == 0).then_some(owner)
}

/// Who has a `pthread_rwlock_t` for writing: readers, writers, phase, futex of writers, two of padding, writer.
fn writer(&[readers, _, _, _, _, _, writer]: &[u32; 7]) -> Option<u32> {
    /// The phase is the writers', and one of them has it.
    const WRITTEN: u32 = 3;
    (readers & WRITTEN == WRITTEN && writer != 0).then_some(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_without_a_timeout_are_told_from_others() {
        assert_eq!(futex_of("202 0x55e0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f12\n"), Some(0x55e0));
        assert_eq!(futex_of("202 0x55e0 0x189 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7f12\n"), Some(0x55e0));
        assert_eq!(futex_of("202 0x55e0 0x189 0x2 0x7ffd10 0x0 0xffffffff 0x7ffe 0x7f12\n"), None);
        assert_eq!(futex_of("202 0x55e0 0x81 0x2 0x0 0x0 0x0 0x7ffe 0x7f12\n"), None);
        assert_eq!(futex_of("0 0x0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f12\n"), None);
        for other in ["running\n", "-1 0x7ffe 0x7f12\n", "", "202", "202 x"] {
            assert_eq!(futex_of(other), None);
        }
    }

    #[test]
    fn what_is_no_lock_that_somebody_has_has_no_owner() {
        assert_eq!(mutex_owner(&[2, 0, 77, 1, 0, 0, 0]), Some(77));
        assert_eq!(mutex_owner(&[0x8000_0000 | 77, 1, 77, 1, 0x31, 0, 0]), Some(77));
        assert_eq!(mutex_owner(&[1, 0, 77, 1, 0, 0, 0]), None);
        assert_eq!(mutex_owner(&[2, 0, 77, 1, 0x400, 0, 0]), None);
        assert_eq!(mutex_owner(&[0; 7]), None);
        assert_eq!(writer(&[3, 0, 1, 0, 0, 0, 77]), Some(77));
        assert_eq!(writer(&[9, 0, 1, 0, 0, 0, 77]), None);
        assert_eq!(writer(&[3, 0, 1, 0, 0, 0, 0]), None);
    }

    /// The very library's own locks.
    #[test]
    fn locks_of_this_c_library_tell_who_has_them() {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let words = |at: *const u32| std::array::from_fn(|n| unsafe { at.add(n).read_volatile() });
        // SAFETY: initialised as the library says, not moved, and unlocked by the thread that has locked them.
        unsafe {
            let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
            assert_eq!(libc::pthread_mutex_lock(&raw mut mutex), 0);
            let mut seen: [u32; 7] = words((&raw const mutex).cast());
            // As if somebody waited.
            seen[0] = 2;
            assert_eq!(mutex_owner(&seen), Some(own));
            libc::pthread_mutex_unlock(&raw mut mutex);
            let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
            assert_eq!(libc::pthread_rwlock_wrlock(&raw mut lock), 0);
            assert_eq!(writer(&words((&raw const lock).cast())), Some(own));
            libc::pthread_rwlock_unlock(&raw mut lock);
            assert_eq!(libc::pthread_rwlock_rdlock(&raw mut lock), 0);
            assert_eq!(writer(&words((&raw const lock).cast())), None);
            libc::pthread_rwlock_unlock(&raw mut lock);
        }
    }
}
