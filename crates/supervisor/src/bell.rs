//! A thread that sleeps on the futexes of a session and rings when the engine has something to say.

use crate::futex;
use crate::session::Session;
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Release};
use std::sync::Arc;
use std::time::Duration;

/// How often the words are looked at where the kernel cannot wait for several at once (before Linux 5.16).
const POLL: Duration = Duration::from_millis(1);

/// Readable when `exec_request`, `events`, `restored`, `served` or `credential_request` of the session has changed.
pub struct Bell {
    eventfd: Arc<OwnedFd>,
    session: Arc<Session>,
    over: Arc<AtomicBool>,
}

impl Bell {
    pub fn new(session: Arc<Session>) -> Result<Self, Errno> {
        let eventfd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let over = Arc::new(AtomicBool::new(false));
        let bell = Self { eventfd, session, over };
        let (fd, session, over) = (bell.eventfd.clone(), bell.session.clone(), bell.over.clone());
        let thread = std::thread::Builder::new().name("bell".into()).stack_size(64 << 10);
        thread
            .spawn(move || listen(&fd, &session, &over))
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::AGAIN))?;
        Ok(bell)
    }

    /// Readable since the last [`Bell::hear`] if something changed.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Takes note, so that the next change rings again.
    pub fn hear(&self) {
        // Nothing to read is as good: the caller looks at the words in any case.
        let _ = rustix::io::read(&self.eventfd, &mut [0u8; 8]);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.over.store(true, Release);
        // The thread may be between its look at `over` and its sleep; then it ends at the next change of its session,
        // or with the supervisor: it holds the session, and disturbs nobody.
        futex::wake(&self.session.control().events);
    }
}

fn listen(fd: &OwnedFd, session: &Session, over: &AtomicBool) {
    let words = words(session);
    let mut seen = words.map(|word| word.load(Acquire));
    while !over.load(Acquire) {
        // What happened before this thread first looked is rung for as well.
        let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        while !over.load(Acquire) && words.map(|word| word.load(Acquire)) == seen {
            if futex::wait_any(std::array::from_fn::<_, WORDS, _>(|i| (words[i], seen[i]))) == Err(Errno::NOSYS) {
                std::thread::sleep(POLL);
            }
        }
        seen = words.map(|word| word.load(Acquire));
    }
}

const WORDS: usize = 5;

fn words(session: &Session) -> [&AtomicU32; WORDS] {
    let control = session.control();
    [&control.exec_request, &control.events, &control.restored, &control.served, &control.credential_request]
}
