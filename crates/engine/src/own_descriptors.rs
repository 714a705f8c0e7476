//! The engine's own descriptors: a few numbers, one after the other, that the program has no use of.
//!
//! They lie high, where programs seldom look. When the program wants just these numbers, or may not use numbers as high any
//! more, they move: copies are made, one word in the session says where they are now, the old ones are closed. The anchor
//! shares the table, and a restored process reads that word.

use crate::access::Access;
use crate::descriptors::for_each_open;
use crate::state::{engine, Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::tracker::Track;
use core::mem::offset_of;
use core::sync::atomic::{fence, Ordering::Release};
use outlast_image::inject::InjectArgs;
use outlast_image::layout::{session, ENGINE_FDS, ENGINE_FD_CEILING, HIDING_FDS, SESSION_BASE};

const O_CLOEXEC: u64 = 0o2000000;
const F_GETFD: u64 = 1;
const RLIMIT_NOFILE: u64 = 7;

fn is_taken(fd: i32) -> bool {
    // SAFETY: F_GETFD has no effect.
    unsafe { !err::is(syscall!(nr::FCNTL, fd, F_GETFD)) }
}

/// How many numbers the program may use now.
fn limit() -> u64 {
    let mut limit = [0u64; 2];
    // SAFETY: asks only.
    unsafe { syscall!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, 0, limit.as_mut_ptr()) };
    limit[0]
}

/// The first of enough free numbers below `limit`, with room to hide closed ones above them if there is any.
fn free_numbers(limit: u64) -> Option<i32> {
    let ceiling = limit.min(ENGINE_FD_CEILING as u64) as i32;
    let highest = |count: i32| (0..=ceiling - count).rev().find(|&low| !(low..low + count).any(is_taken));
    highest(ENGINE_FDS + HIDING_FDS).or_else(|| highest(ENGINE_FDS))
}

/// Makes sure that the engine can go on when the program may use no numbers from `soft` on, and never again one from
/// `hard` on. To be called right after a commit. False: there is no room.
pub fn fit(e: &mut Engine, soft: u64, hard: u64) -> bool {
    let end = (e.fds.own + ENGINE_FDS) as u64;
    if end <= soft {
        return true;
    }
    match free_numbers(soft) {
        Some(first) => move_to(e, first),
        // For a moment the limit can be raised.
        None => end <= hard,
    }
}

/// Leaves the present numbers to the program. To be called right after a commit. False: there are no others.
pub fn step_aside(e: &mut Engine) -> bool {
    free_numbers(limit()).is_some_and(|first| move_to(e, first))
}

fn move_to(e: &mut Engine, first: i32) -> bool {
    let old = e.fds.own;
    // SAFETY: the numbers from `old` on are the engine's, those from `first` on are free; the word in the session is its own.
    unsafe {
        for i in (0..ENGINE_FDS).filter(|i| is_taken(old + i)) {
            if err::is(syscall!(nr::DUP3, old + i, first + i, O_CLOEXEC)) {
                return false;
            }
        }
        fence(Release);
        let word = SESSION_BASE + session::INJECT + offset_of!(InjectArgs, session_fd) as u64;
        (word as *mut i32).write_volatile(first);
        e.fds.own = first;
        e.tracker.renumber([e.own_fd(OwnFd::Userfault), e.own_fd(OwnFd::Pagemap)]);
        e.ring.renumber(e.own_fd(OwnFd::Ring));
        for i in 0..ENGINE_FDS {
            syscall!(nr::CLOSE, old + i);
        }
    }
    true
}

/// Occupies those of the numbers that are in no use, so that no file of the program's gets one.
pub fn occupy(e: &Engine) {
    for fd in (e.fds.own..e.fds.own + ENGINE_FDS).filter(|&fd| !is_taken(fd)) {
        // SAFETY: the number is the engine's.
        unsafe { syscall!(nr::DUP3, e.own_fd(OwnFd::Session), fd, O_CLOEXEC) };
    }
}

/// In a child that does without the engine.
pub fn close_all(e: &Engine) {
    for_each_open(|fd| {
        if e.fds.is_own(fd) {
            // SAFETY: the child's copies of the engine's descriptors.
            unsafe { syscall!(nr::CLOSE, fd) };
        }
    });
}

/// A descriptor that the engine needs for a moment; closed when dropped. No code of the program runs meanwhile.
pub struct Passing {
    pub fd: i64,
    /// It is the last one that can be had.
    pub took_spare: bool,
}

impl Passing {
    /// Opens a file; also where the program has taken every number that it may.
    pub fn open(path: *const u8, flags: u64) -> Result<Passing, i64> {
        // SAFETY: the callers give paths that end with a NUL.
        Passing::of(|| unsafe { syscall!(nr::OPENAT, -100i64, path, flags | O_CLOEXEC, 0) })
    }

    /// What `call` makes.
    pub fn of(call: impl Fn() -> i64) -> Result<Passing, i64> {
        const EMFILE: i64 = -24;
        let (mut fd, mut took_spare) = (call(), false);
        if fd == EMFILE {
            // SAFETY: only looks where the descriptors are; the spare one is the engine's.
            unsafe {
                let e = engine();
                let _access = Access::take(e.fds.own + ENGINE_FDS);
                syscall!(nr::CLOSE, e.own_fd(OwnFd::Spare));
                took_spare = true;
                fd = call();
            }
        }
        // SAFETY: as above. A predecessor that died in between has left the spare number free.
        took_spare |= fd == unsafe { engine() }.own_fd(OwnFd::Spare) as i64;
        let passing = Passing { fd, took_spare };
        if err::is(fd) {
            return Err(fd);
        }
        Ok(passing)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe {
            if self.fd >= 0 {
                syscall!(nr::CLOSE, self.fd);
            }
            if self.took_spare {
                let e = engine();
                let _access = Access::take(e.fds.own + ENGINE_FDS);
                occupy(e);
            }
        }
    }
}
