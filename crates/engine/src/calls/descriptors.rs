//! Calls that make, drop or move descriptors. Their effects are private: they are noted and undone by a rollback, not
//! paid for with a commit each.
//!
//! A descriptor that appeared since the commit is simply closed by a rollback (it is not in the committed table). One
//! that the program closes lives on under a hidden number until the next commit, if closing it is invisible to
//! others; closing a pipe or socket is seen by its peer and is a visible event.

use crate::calls::{names, notifications, offsets, own_folder, own_maps, own_pidfds, owners, unseen};
use crate::commit::commit;
use crate::control::phase;
use crate::descriptors::HIGHEST;
use crate::dispatch::{interruptible, native, redo, Call};
use crate::held_files;
use crate::mutant::without;
use crate::own_descriptors;
use crate::own_faults;
use crate::proc;
use crate::program_rings;
use crate::replies;
use crate::shared_files;
use crate::state::{journal, Engine};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::ops::RangeInclusive;
use outlast_image::context::pending_kind;
use outlast_image::descriptor::{descriptor_kind as kind, unnamed_kind};
use outlast_image::event::phase as at;
use outlast_image::mutant::Mutant;

const O_CREAT: u64 = 0o100;
const O_TRUNC: u64 = 0o1000;
const O_TMPFILE: u64 = 0o20000000;
const O_CLOEXEC: u64 = 0o2000000;
const EFD_SEMAPHORE: u64 = 1;
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const F_DUPFD: u64 = 0;
const F_GETFD: u64 = 1;
const F_SETFD: u64 = 2;
const F_OFD_SETLK: u64 = 37;
const F_OFD_SETLKW: u64 = 38;
const F_SETLEASE: u64 = 1024;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// Calls that make descriptors.
pub fn open(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let a = call.args;
    let flags = match call.nr {
        nr::OPEN => a[1],
        nr::OPENAT => a[2],
        nr::CREAT => O_CREAT | O_TRUNC,
        nr::OPENAT2 => user::read::<u64>(a[2]).unwrap_or(0),
        _ => 0,
    };
    if flags & (O_CREAT | O_TRUNC) != 0 || flags & O_TMPFILE == O_TMPFILE {
        return if unseen::chosen(e) { unseen::serve(e, t, call) } else { names::serve(e, t, call) };
    }
    match call.nr {
        nr::DUP2 | nr::DUP3 => {
            let serves = own_faults::of(call.args[1] as i32).is_some();
            let r = dup_onto(e, t, call);
            if serves {
                own_faults::settle(e);
            }
            r
        }
        nr::PIPE | nr::PIPE2 | nr::SOCKETPAIR => pair(e, call, if call.nr == nr::SOCKETPAIR { a[3] } else { a[0] }),
        nr::FCNTL => fcntl(e, t, call),
        _ => {
            let path = match call.nr {
                nr::OPEN => a[0],
                nr::OPENAT => a[1],
                _ => 0,
            };
            let copy = own_maps::open(e, t, path, flags);
            let r = copy.unwrap_or_else(|| interruptible(t, call));
            match call.nr {
                nr::DUP => e.fds.opened_as(r, call.fd()),
                nr::OPEN | nr::OPENAT if copy.is_none() => e.fds.opened_by(r, path, flags),
                _ => e.fds.opened(r),
            }
            if call.nr == nr::EVENTFD2 && a[1] & EFD_SEMAPHORE != 0 {
                e.fds.origins.is_semaphore(r);
            }
            if call.nr == nr::PIDFD_OPEN {
                own_pidfds::opened(e, call, r);
            }
            r
        }
    }
}

fn pair(e: &mut Engine, call: &Call, at: u64) -> i64 {
    let r = native(call);
    if r == 0 {
        if let Some([x, y]) = user::read::<[i32; 2]>(at) {
            e.fds.opened(x as i64);
            e.fds.opened(y as i64);
            e.fds.origins.pair(x, y, if call.nr == nr::SOCKETPAIR { unnamed_kind::PAIR } else { unnamed_kind::PIPE });
        }
    }
    r
}

fn dup_onto(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let (from, to) = (call.args[0] as i32, call.args[1] as i32);
    if e.fds.is_own(to) && e.fds.is_open(from) {
        // What is hidden under the number is gone after a commit.
        commit(e, call.pending(pending_kind::REDO));
        if !make_way(e, to) {
            return err::EBADF;
        }
    }
    if from != to && e.fds.is_open(to) && e.fds.is_open(from) {
        let r = drop_descriptor(e, t, to, Some(call));
        program_rings::closed(e, to);
        if r.is_some() {
            e.fds.opened_as(to as i64, from);
            return r.unwrap_or(0);
        }
    }
    let r = native(call);
    if !err::is(r) && from != to {
        e.fds.opened_as(r, from);
    }
    r
}

/// Has the engine leave the number to the program; false if it has no other. To be called right after a commit.
pub fn make_way(e: &mut Engine, number: i32) -> bool {
    !e.fds.is_engine(number) || own_descriptors::step_aside(e)
}

/// Takes `fd` from the program so that a rollback can bring it back. `Some(result)`: closing it is visible, and
/// `instead` (or the close itself) was done after a commit. `None`: it lives on under a hidden number.
fn drop_descriptor(e: &mut Engine, t: &mut Thread, fd: i32, instead: Option<&Call>) -> Option<i64> {
    if matches!(e.fds.kind(fd), kind::REGULAR | kind::DIRECTORY | kind::CHARACTER) && without(Mutant::DelayedClose) {
        return None;
    }
    if !notifications::closing(e, fd) && hide(e, fd) {
        return None;
    }
    let close = Call { nr: nr::CLOSE, args: [fd as u64, 0, 0, 0, 0, 0] };
    let call = instead.unwrap_or(&close);
    commit(e, call.pending(pending_kind::REDO));
    phase(at::OPERATION);
    let r = interruptible(t, call);
    phase(at::COMPLETED);
    Some(r)
}

/// Lets `fd`, whose close nobody else can see, live on under a hidden number until the next commit; false if it cannot.
fn hide(e: &mut Engine, fd: i32) -> bool {
    let kind = e.fds.kind(fd);
    // Whoever waits for a lock sees the close that ends it.
    let private = kind == kind::CHARACTER || matches!(kind, kind::REGULAR | kind::DIRECTORY) && !may_hold_lock(e, fd);
    let Some(hidden) = (if private { e.fds.hiding_place() } else { None }) else { return false };
    // SAFETY: F_GETFD has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, F_GETFD) } as i32;
    if e.store().journal_append(journal::CLOSE, bytemuck::bytes_of(&[hidden, fd, flags, 0])).is_err() {
        return false;
    }
    // SAFETY: the hidden number is the engine's and free.
    if err::is(unsafe { syscall!(nr::DUP3, fd, hidden, O_CLOEXEC) }) {
        return false;
    }
    e.fds.delay(fd, hidden);
    e.unsynced.renumber(fd, hidden);
    true
}

/// May there be a lock or a lease that ends when `fd` is closed?
pub fn may_hold_lock(e: &Engine, fd: i32) -> bool {
    e.kernel.locks != 0 && shows_lock(fd)
}

/// Does the kernel say so, or nothing?
pub fn shows_lock(fd: i32) -> bool {
    tells(fd, b"lock:")
}

/// Does the descriptor have one that lasts as long as the file is open, or mapped?
pub fn may_hold_lasting_lock(fd: i32) -> bool {
    tells(fd, b"FLOCK") || tells(fd, b"OFDLCK")
}

/// Does the process have a lock of the file's that ends as soon as it closes any descriptor of it (fcntl)?
pub fn may_hold_record_lock(fd: i32) -> bool {
    tells(fd, b"POSIX")
}

/// Does the kernel say this of the descriptor, or nothing, or more than is read here?
fn tells(fd: i32, word: &[u8]) -> bool {
    let mut text = [0u8; 2048];
    let text = proc::info(fd, &mut text);
    text.is_empty() || text.len() == 2048 || text.windows(word.len()).any(|w| w == word)
}

/// The program has closed `fd`.
pub fn gone(e: &mut Engine, fd: i32) {
    if replies::are_owed() {
        replies::closed(e, fd);
    }
    e.fds.closed(fd);
    program_rings::closed(e, fd);
}

/// close and close_range.
pub fn close(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let serves = call.nr == nr::CLOSE_RANGE || own_faults::of(call.fd()).is_some();
    let r = if call.nr == nr::CLOSE_RANGE { close_range(e, call) } else { close_one(e, t, call) };
    if serves {
        own_faults::settle(e);
    }
    r
}

fn close_one(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let fd = call.fd();
    if e.fds.is_own(fd) || (!e.fds.is_open(fd) && fd >= 0 && (fd as usize) < HIGHEST) {
        return err::EBADF;
    }
    match drop_descriptor(e, t, fd, None) {
        Some(r) => {
            if r != err::EBADF {
                gone(e, fd);
            }
            r
        }
        None => {
            let r = native(call);
            gone(e, fd);
            r
        }
    }
}

fn close_range(e: &mut Engine, call: &Call) -> i64 {
    let [first, last, flags, ..] = call.args;
    if first as u32 > last as u32 || flags & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 {
        return err::EINVAL;
    }
    let mut hidden = flags & CLOSE_RANGE_CLOEXEC == 0;
    for fd in range(call) {
        if !e.fds.is_open(fd) {
            continue;
        }
        hidden = !notifications::closing(e, fd) && hidden && hide(e, fd);
        if hidden {
            // SAFETY: the descriptor is the program's, which closes it.
            unsafe { syscall!(nr::CLOSE, fd) };
            gone(e, fd);
        }
    }
    if !hidden {
        commit(e, call.pending(pending_kind::REDO));
        phase(at::OPERATION);
        close_range_now(e, call);
        phase(at::COMPLETED);
    }
    0
}

/// Closes or marks what is left of the range; the engine's own descriptors are not in it.
pub fn close_range_now(e: &mut Engine, call: &Call) -> i64 {
    for fd in range(call) {
        if !e.fds.is_open(fd) {
            continue;
        }
        // SAFETY: the descriptor is the program's.
        unsafe {
            if call.args[2] & CLOSE_RANGE_CLOEXEC != 0 {
                syscall!(nr::FCNTL, fd, F_SETFD, 1);
            } else {
                syscall!(nr::CLOSE, fd);
                gone(e, fd);
            }
        }
    }
    0
}

/// The numbers that a close_range names, as far as there may be any.
fn range(call: &Call) -> RangeInclusive<i32> {
    let [first, last] = [0, 1].map(|i| (call.args[i] as u32).min(HIGHEST as u32) as i32);
    first..=last.min(HIGHEST as i32 - 1)
}

/// fcntl: the commands that make or mark descriptors; all others as the table says.
pub fn fcntl(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if owners::is_one(e, call) {
        return owners::serve(e, call);
    }
    match call.args[1] {
        F_DUPFD | F_DUPFD_CLOEXEC => {
            let r = native(call);
            e.fds.opened_as(r, call.fd());
            r
        }
        F_SETFD => {
            // SAFETY: F_GETFD has no effect.
            let old = unsafe { syscall!(nr::FCNTL, call.fd(), F_GETFD) };
            if !err::is(old) && old as u64 & 1 != call.args[2] & 1 {
                let entry = [call.fd() as i64, old];
                if e.store().journal_append(journal::FD_FLAGS, bytemuck::bytes_of(&entry)).is_err() {
                    return redo(e, t, call);
                }
                e.fds.marked(call.fd());
            }
            native(call)
        }
        // F_GETFD, F_GETFL, F_GETLK, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS, F_OFD_GETLK.
        1 | 3 | 5 | 9 | 11 | 16 | 36 | 1025 | 1032 | 1034 => native(call),
        F_OFD_SETLK | F_OFD_SETLKW | F_SETLEASE => lock(e, t, call),
        _ => {
            let is_told = outlast_calls::again(call.nr, &call.args).is_some();
            let r = if is_told { names::serve(e, t, call) } else { redo(e, t, call) };
            e.fds.file_marked(call.fd());
            r
        }
    }
}

/// Locks and leases that belong to an open file, and end when it is closed.
pub fn lock(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    held_files::locking(e, call.fd());
    if e.kernel.locks == 0 {
        (e.kernel.locks, e.kernel_dirty) = (1, true);
    }
    if unseen::chosen(e) {
        interruptible(t, call)
    } else {
        redo(e, t, call)
    }
}

/// lseek, getdents.
pub fn offset(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if call.nr == nr::FCNTL {
        return fcntl(e, t, call);
    }
    if shared_files::moves(e, call) {
        return shared_files::alone(e, t, |e, _| {
            offsets::note(e, call.fd());
            native(call)
        });
    }
    offsets::note(e, call.fd());
    let entries = matches!(call.nr, nr::GETDENTS | nr::GETDENTS64);
    loop {
        let r = interruptible(t, call);
        if r <= 0 || !entries {
            return r;
        }
        let left = own_folder::filter(e, call.nr, call.fd(), call.args[1], r as u64);
        if left > 0 {
            return left as i64;
        }
    }
}
