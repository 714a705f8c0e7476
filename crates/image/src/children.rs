//! The children of a program that is a tree: a table in its parent's session, so that it outlives the parent's process.
//!
//! All processes of a tree are children of the supervisor for the kernel. Who is whose child, what became of it and whether its
//! parent has been told is written down here. A birth the kernel itself notes, within clone; an end the supervisor; that its
//! status was taken the engine, with the commit from which on it is: a parent that goes back behind that takes it once more.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Acquire};

/// Values of [`Child::state`].
pub mod state {
    /// Nobody's place.
    pub const FREE: u32 = 0;
    /// Engine: about to be made; it exists once [`super::Child::birth`] says so.
    pub const EXPECTED: u32 = 1;
    /// Engine: made.
    pub const ALIVE: u32 = 2;
    /// Supervisor: ended, and its status waits for its parent.
    pub const ENDED: u32 = 3;
    /// Engine: the parent has taken its status, in commit [`super::Child::taken`].
    pub const TAKEN: u32 = 4;
}

/// Bits of [`Child::news`]: what a parent may be told of besides a child's end.
pub mod news {
    /// It has stopped, by [`super::Child::stopped_by`].
    pub const STOPPED: u32 = 1;
    /// It was continued.
    pub const CONTINUED: u32 = 2;
    /// Supervisor: its end, or the rest, was not told of by SIGCHLD yet. Engine: clears it.
    pub const UNTOLD: u32 = 4;
    /// Supervisor: it ended before it could be recovered, and is to be made once more.
    pub const STILLBORN: u32 = 8;
    /// Supervisor: it can be recovered.
    pub const RECOVERABLE: u32 = 16;
}

/// One child. Zeroes: none.
#[repr(C)]
pub struct Child {
    /// One of [`state`].
    pub state: AtomicU32,
    /// Kernel: its process id, from its birth on. Engine: 0 before.
    pub birth: AtomicI32,
    /// Engine: which of the sessions that the supervisor had made ready it has; 0: it is not protected.
    pub member: AtomicU32,
    /// Bits of [`news`].
    pub news: AtomicU32,
    /// Supervisor: its status as wait4 tells it, once it has ended.
    pub status: AtomicI32,
    /// Supervisor: the signal that stopped it.
    pub stopped_by: AtomicU32,
    /// Supervisor: its process group when it ended.
    pub group: AtomicI32,
    /// Supervisor: its user, as siginfo tells it.
    pub user: AtomicU32,
    /// Engine: the commit that stands before the fork.
    pub spawned: AtomicU64,
    /// Engine: the commit that holds that its status was taken.
    pub taken: AtomicU64,
    /// Supervisor: what it used, as wait4 tells it, once it has ended.
    pub usage: [AtomicU64; USAGE_WORDS],
    unused: [u64; 8],
}

/// What a process has used: the words of `struct rusage`.
pub type Usage = [u64; USAGE_WORDS];
pub const USAGE_WORDS: usize = 18;

impl Child {
    pub fn usage(&self) -> Usage {
        self.usage.each_ref().map(|word| word.load(Acquire))
    }
}

/// Adds what another process has used, as the kernel does for children that were waited for: of the most memory it is the maximum.
pub fn add_usage(sum: &mut Usage, more: &Usage) {
    const MICROSECONDS: u64 = 1_000_000;
    const MAX_RSS: usize = 4;
    for (i, (sum, more)) in sum.iter_mut().zip(more).enumerate() {
        *sum = if i == MAX_RSS { *more.max(sum) } else { sum.wrapping_add(*more) };
    }
    // Two times, as seconds and microseconds.
    for time in sum[..MAX_RSS].chunks_exact_mut(2) {
        (time[0], time[1]) = (time[0].wrapping_add(time[1] / MICROSECONDS), time[1] % MICROSECONDS);
    }
}

/// Children that a program may have at a time.
pub const CHILDREN: usize = 1024;
/// Bytes of the table.
pub const LEN: u64 = (CHILDREN * size_of::<Child>()) as u64;

const _: () = assert!(size_of::<Child>() == 256);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_with_their_seconds_and_memory_does_not() {
        let (mut sum, mut more): (Usage, Usage) = ([0; USAGE_WORDS], [0; USAGE_WORDS]);
        (sum[..6]).copy_from_slice(&[1, 700_000, 2, 1, 500, 7]);
        (more[..6]).copy_from_slice(&[3, 600_000, 0, 999_999, 400, 8]);
        add_usage(&mut sum, &more);
        assert_eq!(sum[..6], [5, 300_000, 3, 0, 500, 15]);
    }
}
