//! A pidfd of the program itself that an epoll watches. What an epoll knows is the open file, which stands for the dead: it is to
//! watch the one that takes its place.
//!
//! That somebody watches it, and what for, is known to the epoll alone. So the file that is watched stays open until the next one is
//! watched, and a word of the session says which it is: a successor of this process, should it die meanwhile, puts that back.

use super::epoll::{self, interests};
use crate::mutant::without;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::mutant::Mutant;

/// Not 0: the file that is watched under a number is open under another one, too: both numbers.
const MOVING: *mut u64 = (SESSION_BASE + session::PENDING + 3080) as *mut u64;
const F_GETFD: u64 = 1;
const FD_CLOEXEC: i64 = 1;
const O_CLOEXEC: u64 = 0o2000000;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// Puts what is open as `new` under the number `fd`, also for whoever watches that.
pub fn replace(e: &mut Engine, fd: i32, new: i32) {
    // SAFETY: a number for what is open.
    let old = unsafe { syscall!(nr::FCNTL, fd, F_DUPFD_CLOEXEC, 0) };
    if err::is(old) || without(Mutant::WatchedPidfds) {
        return put(new, fd);
    }
    let old = old as i32;
    set_watched(old, fd);
    put(new, fd);
    let watch = |epoll, interest: &epoll::Interest| {
        epoll::watch(epoll, interest);
    };
    if for_each_interest(e, fd, watch) {
        set_watched(new, fd);
        // Somebody else may have the old file open as well, which would be reported as ended for ever.
        put(old, fd);
        for_each_interest(e, fd, |epoll, _| epoll::leave(epoll, fd));
        put(new, fd);
    }
    // SAFETY: a word of the session that nobody else uses; the number was made above.
    unsafe {
        MOVING.write_volatile(0);
        syscall!(nr::CLOSE, old);
    }
}

/// Puts back what a dead predecessor was replacing. To be called before what the commit does not know is closed.
pub fn put_back(e: &Engine) {
    // SAFETY: a word of the session that nobody else uses.
    let moving = unsafe { MOVING.read_volatile() };
    let (watched, fd) = ((moving >> 32) as i32, moving as u32 as i32);
    if moving != 0 && e.fds.is_open(fd) && !e.fds.is_open(watched) && !e.fds.is_engine(watched) {
        put(watched, fd);
    }
    // SAFETY: as above.
    unsafe { MOVING.write_volatile(0) };
}

fn set_watched(number: i32, fd: i32) {
    // SAFETY: as above.
    unsafe { MOVING.write_volatile((number as u64) << 32 | fd as u64) };
}

/// Has what is open as `from` be open as `to`, with the flags that the number has.
fn put(from: i32, to: i32) {
    // SAFETY: both are the program's or made for it.
    unsafe {
        let flags = syscall!(nr::FCNTL, to, F_GETFD);
        let is_cloexec = flags >= 0 && flags & FD_CLOEXEC != 0;
        syscall!(nr::DUP3, from, to, if is_cloexec { O_CLOEXEC } else { 0 });
    }
}

/// Calls `each` with every epoll of the program that watches the number `fd`, and with what it looks for there; false: there is none.
fn for_each_interest(e: &mut Engine, fd: i32, each: impl Fn(i32, &epoll::Interest)) -> bool {
    let mut any = false;
    for at in 0..e.fds.end() {
        if e.fds.is_open(at) && e.fds.kind(at) == kind::ANONYMOUS {
            for interest in interests(at, scratch::maps_text()).filter(|interest| interest.fd == fd) {
                each(at, &interest);
                any = true;
            }
        }
    }
    any
}
