//! Who looks may itself be kept from it by what it is to tell of: a thread that wakes on a processor where the kernel is stuck waits until
//! that switches, and where interrupts are off it is not even woken. Another thread, on another processor, sees that no look has come, has
//! the first one go on elsewhere, and wakes it.

use super::place::without;
use outlast_supervisor::clock;
use rustix::thread::{gettid, sched_getaffinity, sched_getcpu, sched_setaffinity, Pid};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So many looks are missed at most before something is done.
const LOOKS: u32 = 3;

/// Looks after the thread that begins it, until the value is dropped.
pub struct StandBy {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    who: Pid,
    /// When it looked last, in nanoseconds, and on which processor.
    looked: AtomicU64,
    processor: AtomicU32,
    /// How often it looks, in nanoseconds; 0: not at all.
    every: AtomicU64,
    moved: AtomicBool,
    has_ended: AtomicBool,
}

impl StandBy {
    /// `prepare` is called by the other thread first, `wake` when the first is to look although it may not have woken.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(prepare: impl FnOnce() + Send + 'static, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            who: gettid(),
            looked: AtomicU64::new(clock::monotonic()),
            processor: AtomicU32::new(sched_getcpu() as u32),
            every: AtomicU64::new(0),
            moved: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let work = move || {
            prepare();
            of_thread.stand_by(wake);
        };
        let thread = thread::Builder::new().name("stand-by".into()).spawn(work)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// It has looked, and will again after `every`. True: it was made to run elsewhere since.
    pub fn looked(&self, every: Option<Duration>) -> bool {
        let nanos = every.map_or(0, |every| every.as_nanos().try_into().unwrap_or(u64::MAX));
        self.shared.processor.store(sched_getcpu() as u32, Release);
        self.shared.looked.store(clock::monotonic(), Release);
        self.shared.every.store(nanos, Release);
        if let Some(thread) = self.thread.as_ref().filter(|_| nanos > 0) {
            thread.thread().unpark();
        }
        self.shared.moved.swap(false, Acquire)
    }
}

impl Drop for StandBy {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn stand_by(&self, wake: impl Fn()) {
        let usual = sched_getaffinity(None).ok();
        while !self.has_ended.load(Acquire) {
            let every = Duration::from_nanos(self.every.load(Acquire));
            if every.is_zero() {
                thread::park();
                continue;
            }
            let processor = self.processor.load(Acquire);
            // Where there is nowhere else, or it is not allowed, chance decides.
            let elsewhere = usual.map(|usual| without(usual, &[processor]));
            if let Some(elsewhere) = &elsewhere {
                let _ = sched_setaffinity(None, elsewhere);
            }
            thread::sleep(every * LOOKS);
            let since = Duration::from_nanos(clock::monotonic().saturating_sub(self.looked.load(Acquire)));
            // It may have looked on another processor meanwhile.
            let is_same = self.processor.load(Acquire) == processor;
            if let Some(elsewhere) = elsewhere.filter(|_| is_same && since > every * LOOKS) {
                self.moved.store(true, Release);
                let _ = sched_setaffinity(Some(self.who), &elsewhere);
                wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stuck::{pin, Stuck};
    use super::*;
    use std::sync::mpsc::{channel, RecvTimeoutError};
    use std::thread::{available_parallelism, spawn};

    const EVERY: Duration = Duration::from_millis(30);

    fn take_precedence() -> bool {
        let parameters = libc::sched_param { sched_priority: 90 };
        // SAFETY: the structure is ours.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
    }

    #[test]
    fn who_waits_where_the_kernel_is_stuck_goes_on_elsewhere() {
        let processors = available_parallelism().map_or(1, usize::from);
        let has_ended = Arc::new(AtomicBool::new(false));
        let looks = Arc::new(AtomicU64::new(0));
        let moves = Arc::new(AtomicU64::new(0));
        let (of_looks, of_moves, of_end) = (Arc::clone(&looks), Arc::clone(&moves), Arc::clone(&has_ended));
        let (ready, is_ready) = channel();
        let looker = spawn(move || {
            let (wake, woken) = channel();
            let has_precedence = processors > 1 && take_precedence();
            let _ = ready.send(has_precedence);
            if !has_precedence {
                return;
            }
            let to_itself = wake.clone();
            let stand_by =
                StandBy::begin(|| assert!(take_precedence()), move || to_itself.send(()).unwrap_or_default()).unwrap();
            // It is there, and would go elsewhere only if it were awake.
            pin(std::iter::once(processors - 1));
            pin(0..processors);
            while !of_end.load(Acquire) {
                of_moves.fetch_add(stand_by.looked(Some(EVERY)).into(), Release);
                of_looks.fetch_add(1, Release);
                assert_ne!(woken.recv_timeout(EVERY), Err(RecvTimeoutError::Disconnected));
            }
        });
        let stuck = match is_ready.recv() {
            Ok(true) => Stuck::begin(),
            _ => None,
        };
        // How often it was asked, and how often at most without a look in between.
        let (mut asked, mut silent, mut longest, mut before) = (0, 0, 0, 0);
        while stuck.as_ref().is_some_and(|stuck| !stuck.is_over()) {
            let now = looks.load(Acquire);
            silent = if now == before { silent + 1 } else { 0 };
            (asked, longest, before) = (asked + 1, longest.max(silent), now);
            thread::sleep(EVERY / 4);
        }
        has_ended.store(true, Release);
        looker.join().unwrap();
        if !stuck.is_some_and(Stuck::was_stuck) {
            return println!(
                "skipped: needs to run before others, BPF, and a kernel that does not switch in the middle of its work"
            );
        }
        let moves = moves.load(Acquire);
        assert!(moves > 0 && longest < asked / 4, "{moves} moves, {longest} of {asked} without a look");
    }
}
