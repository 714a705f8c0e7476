//! A thread that sleeps on the futexes of a session and rings when the engine has something to say.
//!
//! What rings is a difference from what the supervisor has looked at, not from what this thread saw last: a word that
//! changes twice while nobody sleeps on it would otherwise be taken for unchanged.

use crate::futex;
use crate::session::Session;
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::Arc;
use std::time::Duration;

/// How often the words are looked at where the kernel cannot wait for several at once (before Linux 5.16).
const POLL: Duration = Duration::from_millis(1);

/// Readable when a word of the session that the engine changes has changed since it was heard last.
pub struct Bell {
    shared: Arc<Shared>,
}

struct Shared {
    eventfd: OwnedFd,
    session: Arc<Session>,
    /// The words as the supervisor heard them last.
    heard: [AtomicU32; WORDS],
    /// Counts how often it heard. A futex.
    times: AtomicU32,
    has_rung: AtomicBool,
    over: AtomicBool,
}

impl Bell {
    pub fn new(session: Arc<Session>) -> Result<Self, Errno> {
        let shared = Arc::new(Shared {
            eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            heard: words(&session).map(|word| AtomicU32::new(word.load(Acquire))),
            session,
            times: AtomicU32::new(0),
            has_rung: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let bell = Self { shared: shared.clone() };
        let thread = std::thread::Builder::new().name("bell".into()).stack_size(64 << 10);
        let started = thread.spawn(move || shared.listen());
        started.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::AGAIN))?;
        Ok(bell)
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared.eventfd.as_fd()
    }

    /// Whether it rings: what its file tells, without a system call.
    pub fn rings(&self) -> bool {
        self.shared.has_rung.load(Acquire)
    }

    /// Takes note of the words. To be called before they are looked at: what changes later rings again.
    pub fn hear(&self) {
        // Where nothing has changed the thread sleeps as it is to.
        if !self.rings() && self.shared.has_heard() {
            return;
        }
        self.shared.has_rung.store(false, Release);
        // Nothing to read is as good: the caller looks at the words in any case.
        let _ = rustix::io::read(&self.shared.eventfd, &mut [0u8; 8]);
        for (heard, word) in self.shared.heard.iter().zip(words(&self.shared.session)) {
            heard.store(word.load(Acquire), Release);
        }
        self.shared.wake();
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.shared.over.store(true, Release);
        self.shared.wake();
    }
}

impl Shared {
    fn heard(&self) -> [u32; WORDS] {
        std::array::from_fn(|i| self.heard[i].load(Acquire))
    }

    fn has_heard(&self) -> bool {
        words(&self.session).map(|word| word.load(Acquire)) == self.heard()
    }

    fn wake(&self) {
        self.times.fetch_add(1, AcqRel);
        futex::wake(&self.times);
    }

    fn listen(&self) {
        let words = words(&self.session);
        loop {
            let times = self.times.load(Acquire);
            if self.over.load(Acquire) {
                return;
            }
            let heard = self.heard();
            let mut waits = [(&self.times, times); WORDS + 1];
            if words.map(|word| word.load(Acquire)) == heard {
                for i in 0..WORDS {
                    waits[i] = (words[i], heard[i]);
                }
            } else {
                // It is full only after so many rings that nobody heard that one more makes no difference.
                let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
                // Afterwards: who hears of it in between hears of it twice.
                self.has_rung.store(true, Release);
            }
            if futex::wait_any(waits) == Err(Errno::NOSYS) {
                std::thread::sleep(POLL);
            }
        }
    }
}

const WORDS: usize = 9;

fn words(session: &Session) -> [&AtomicU32; WORDS] {
    let control = session.control();
    [
        &control.exec_request,
        &control.events,
        &control.restored,
        &control.served,
        &control.credential_request,
        &control.go_back,
        &control.births,
        &control.tree_request,
        &control.signals,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{poll, PollFd, PollFlags};
    use rustix::time::Timespec;

    /// Whether it rings within a time that is long for a ring and short for a test.
    fn rings(bell: &Bell, within: Duration) -> bool {
        let time = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
        poll(&mut [PollFd::new(&bell.file(), PollFlags::IN)], Some(&time)).unwrap() == 1
    }

    #[test]
    fn rings_for_a_change_and_not_without_one() {
        let session = Arc::new(Session::empty());
        let bell = Bell::new(session.clone()).unwrap();
        assert!(!rings(&bell, Duration::from_millis(50)));
        session.control().events.store(1, Release);
        futex::wake(&session.control().events);
        assert!(rings(&bell, Duration::from_secs(20)));
        bell.hear();
        assert!(!rings(&bell, Duration::from_millis(50)));
    }

    #[test]
    fn a_word_that_comes_back_to_what_the_thread_saw_rings_if_it_was_heard_otherwise() {
        let session = Arc::new(Session::empty());
        let word = &session.control().exec_request;
        let bell = Bell::new(session.clone()).unwrap();
        for _ in 0..1000 {
            word.store(1, Release);
            futex::wake(word);
            assert!(rings(&bell, Duration::from_secs(20)));
            // The supervisor answers, the engine asks again: all before the thread has run.
            word.store(0, Release);
            bell.hear();
        }
    }
}
