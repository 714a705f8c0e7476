//! A process that waits in the place of a dead one that was registered with a message queue (mq_notify), and sends its successor the
//! signal. It has nothing of the program's but the queue, and ends with the process that it is for.

use crate::anchor;
use crate::call_filters;
use crate::calls::notifications;
use crate::numbers;
use crate::own_descriptors::Passing;
use crate::sys::{err, now_ns, nr, syscall};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};
use outlast_filter::needs::wish;
use outlast_image::kernel::{Notification, NOTIFICATIONS};
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::notifiers::Notifiers;

const CLONE_PARENT: u64 = 0x8000;
const EPOLL_CREATE1: u64 = 291;
const EPOLL_CTL: u64 = 233;
const EPOLL_CTL_ADD: u64 = 1;
const EPOLLIN: u32 = 1;
const EPOLLET: u32 = 1 << 31;

/// Those of this process.
static PIDS: [AtomicI32; NOTIFICATIONS] = [const { AtomicI32::new(0) }; NOTIFICATIONS];
/// The word that each has to find.
static WORDS: [AtomicU32; NOTIFICATIONS] = [const { AtomicU32::new(0) }; NOTIFICATIONS];

fn shared() -> &'static Notifiers {
    // SAFETY: the part of the session consists of atomics only, and is mapped as long as there is an engine.
    unsafe { &*((SESSION_BASE + session::NOTIFIERS) as *const Notifiers) }
}

/// The process that has called mq_notify behind this commit, when nobody was registered there; 0: none has.
pub fn registrar(seq: u64) -> u32 {
    let [known, pid] = [&shared().commit, &shared().registrar].map(|word| word.load(Acquire));
    if known == seq {
        pid as u32
    } else {
        0
    }
}

pub fn register(seq: u64, pid: u32) {
    // Whoever dies in between has called nothing.
    shared().commit.store(0, Release);
    shared().registrar.store(pid.into(), Release);
    shared().commit.store(seq, Release);
}

/// Makes one. False: that cannot be.
pub fn start(place: usize, n: &Notification) -> bool {
    if ![wish::EPOLL_CREATE1, wish::EPOLL_WAIT].into_iter().all(call_filters::permit) {
        return false;
    }
    cancel(place);
    let word = now_ns() as u32 | 1;
    WORDS[place].store(word, Relaxed);
    shared().words[place].store(word, Release);
    // Opened before: a successor of this process may have the same number.
    // SAFETY: pidfd_open has no other effect.
    let Ok(process) = Passing::of(|| unsafe { syscall!(nr::PIDFD_OPEN, numbers::own(), 0) }) else { return false };
    // SAFETY: a clone without CLONE_VM returns twice on separate copies of this stack.
    let r = unsafe { syscall!(nr::CLONE, CLONE_PARENT, 0, 0, 0, 0) };
    if r == 0 {
        // SAFETY: plain calls of a process of its own.
        unsafe { wait(place, n, process.fd, word) };
    }
    PIDS[place].store(r as i32, Relaxed);
    !err::is(r)
}

/// Ends the one of this place, if there is one; true if it had not sent its signal, and will not.
pub fn cancel(place: usize) -> bool {
    let (pid, word) = (PIDS[place].swap(0, Relaxed), WORDS[place].swap(0, Relaxed));
    let is_there = pid > 0 && take(place, word);
    if is_there {
        // SAFETY: it ends only after it has taken the word, or with this process.
        unsafe { syscall!(nr::KILL, pid, 9) };
    }
    is_there
}

/// Only one of those who want to send the signal succeeds in this.
fn take(place: usize, word: u32) -> bool {
    shared().words[place].compare_exchange(word, 0, AcqRel, Acquire).is_ok()
}

/// A process that was restored has none yet, and those of its predecessor are to send nothing.
pub fn reset() {
    shared().words.iter().for_each(|word| word.store(0, Release));
    PIDS.iter().for_each(|pid| pid.store(0, Relaxed));
    WORDS.iter().for_each(|word| word.store(0, Relaxed));
}

/// `struct epoll_event`, which is packed.
fn event(events: u32, data: u8) -> [u8; 12] {
    let mut event = [0; 12];
    event[..4].copy_from_slice(&events.to_le_bytes());
    event[4] = data;
    event
}

unsafe fn wait(place: usize, n: &Notification, process: i64, word: u32) -> ! {
    let n = *n;
    anchor::stand_apart(c"outlast-notifier");
    anchor::let_go_of_memory();
    let epoll = syscall!(EPOLL_CREATE1, 0);
    let added = |fd: i64, event: &[u8; 12]| syscall!(EPOLL_CTL, epoll, EPOLL_CTL_ADD, fd, event.as_ptr()) == 0;
    let ready = !err::is(epoll)
        && added(process, &event(EPOLLIN, 1))
        // Whatever waits in the queue was there before: only what comes counts.
        && added(n.fd as i64, &event(EPOLLIN | EPOLLET, 0));
    if !ready {
        syscall!(nr::EXIT_GROUP, 1);
    }
    keep([n.fd as i64, process, epoll]);
    loop {
        if notifications::owner_of(n.fd) != Some(n.owner) {
            if take(place, word) && n.signal != 0 {
                let info = notifications::information(&n);
                syscall!(nr::PIDFD_SEND_SIGNAL, process, n.signal, info.as_ptr(), 0);
            }
            syscall!(nr::EXIT_GROUP, 0);
        }
        let mut events = [[0u8; 12]; 2];
        let count = syscall!(nr::EPOLL_WAIT, epoll, events.as_mut_ptr(), events.len(), -1i64).max(0) as usize;
        if events[..count.min(2)].iter().any(|event| event[4] == 1) {
            syscall!(nr::EXIT_GROUP, 0);
        }
    }
}

/// Closes all descriptors but these.
unsafe fn keep(mut fds: [i64; 3]) {
    fds.sort_unstable();
    let mut from = 0;
    for fd in fds {
        if from < fd {
            syscall!(nr::CLOSE_RANGE, from, fd - 1, 0);
        }
        from = fd + 1;
    }
    syscall!(nr::CLOSE_RANGE, from, u32::MAX, 0);
}
