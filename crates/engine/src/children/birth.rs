//! A child of fork's is made: a child of the supervisor's, for the kernel, and of the program's for the program.

use super::bare;
use super::begin::come_into_its_own;
use super::child_session::ChildSession;
use super::newborn::{Memory, Newborn};
use super::ready::{self, Ready};
use super::{born, expect_with, forget};
use crate::calls::contexts;
use crate::dispatch::{native, Call};
use crate::own_faults;
use crate::program_rings;
use crate::replies;
use crate::signals;
use crate::state::{Engine, OwnFd};
use crate::sys::{err, futex_wait, nr, syscall};
use crate::thread::Thread;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::children::Child;
use outlast_image::control::{other_state, Control};
use outlast_image::layout::{STORE_BASE, STORE_LEN};

/// How long a child may take until it has an anchor, before it is looked after. Nanoseconds.
const PATIENCE_NS: u64 = 2_000_000;

/// May a child of this thread, as the program is now, begin from a copy of its store?
pub fn may_be_copied(e: &mut Engine, t: &Thread) -> bool {
    let has_none = !program_rings::exist(e) && !contexts::are_any() && !own_faults::any();
    // The child's one thread goes on in the place of the first.
    let is_first = t.place == 0 || !world::has_several();
    has_none && is_first && !replies::are_owed()
}

/// Makes the child that the commit stands before, again should it die before it can be recovered.
pub fn bear(e: &mut Engine, t: &mut Thread, call: &Call, newborn: &Newborn, child: &Child, ready: Ready) -> i64 {
    let mut ready = ready;
    loop {
        let (r, is_born) = try_to_bear(e, newborn, child, &ready);
        if is_born {
            return born(e, t, call, child, r);
        }
        if err::is(r) {
            forget(child);
            return r;
        }
        // What it began with may be half of something.
        let Some(next) = ready::receive(e) else {
            forget(child);
            return err::EAGAIN;
        };
        ready = next;
        expect_with(child, ready.member);
    }
}

/// The child's process id, or the error, and whether it can be recovered.
fn try_to_bear(e: &mut Engine, newborn: &Newborn, child: &Child, ready: &Ready) -> (i64, bool) {
    let is_bare = bare::is_wanted(e);
    if !copy_store(e, ready.store, is_bare) {
        return (err::ENOMEM, false);
    }
    let session = match ChildSession::prepare(e, ready, other_state::CHILD) {
        Ok(session) => session,
        Err(r) => return (r, false),
    };
    session.control().commits.store(1, Release);
    session.control().bare.store(if is_bare { e.store().seq() } else { 0 }, Release);
    let clone = newborn.as_sibling(Memory::Copied, child.birth.as_ptr() as u64);
    let r = signals::blocked_in_child(|| native(&clone));
    if r == 0 {
        // SAFETY: this is the child, whose only thread is in the engine.
        unsafe { come_into_its_own(e, ready) };
    }
    (r, !err::is(r) && await_anchor(session.control(), r))
}

/// Copies what there is of the store's file and counts; if it is to be bare, of pages only what it keeps. No commit is made meanwhile:
/// the caller has the engine.
fn copy_store(e: &mut Engine, to: i32, is_bare: bool) -> bool {
    const FALLOC_FL_KEEP_SIZE_PUNCH_HOLE: u64 = 3;
    let (from, dead) = (e.own_fd(OwnFd::Store), e.store().dead_ring());
    // SAFETY: the other file is the engine's own.
    unsafe { syscall!(nr::FALLOCATE, to, FALLOC_FL_KEEP_SIZE_PUNCH_HOLE, 0, STORE_LEN) };
    if !is_bare {
        return copy(from, to, 0, dead.0) && copy(from, to, dead.1, STORE_LEN);
    }
    let base = e.store().areas().base.off;
    let mut is_copied = copy(from, to, 0, dead.0) && copy(from, to, dead.1, base);
    let (start, end) = bare::KEPT;
    e.store().chunk_runs(start, end, &mut |_, at, len| is_copied &= copy(from, to, at, at + len));
    is_copied
}

/// Copies what there is between two offsets.
fn copy(from: i32, to: i32, start: u64, end: u64) -> bool {
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    let mut at = start;
    while at < end {
        // SAFETY: the offsets of both files are the engine's own, and the store is mapped.
        unsafe {
            let first = syscall!(nr::LSEEK, from, at, SEEK_DATA);
            if err::is(first) || first as u64 >= end {
                // There is no more.
                return true;
            }
            let hole = syscall!(nr::LSEEK, from, first, SEEK_HOLE);
            if err::is(hole) {
                return false;
            }
            at = (hole as u64).min(end);
            let mut done = first as u64;
            while done < at {
                let n = syscall!(nr::PWRITE64, to, STORE_BASE + done, at - done, done);
                if n <= 0 {
                    return false;
                }
                done += n as u64;
            }
        }
    }
    true
}

/// Waits until the child can be recovered. False: it has died before.
fn await_anchor(c: &Control, pid: i64) -> bool {
    loop {
        let served = c.served.load(Acquire);
        if c.anchor_pid.load(Acquire) != 0 {
            return true;
        }
        futex_wait(&c.served, served, Some(PATIENCE_NS));
        if c.anchor_pid.load(Acquire) == 0 && is_over(pid) {
            return c.anchor_pid.load(Acquire) != 0;
        }
    }
}

/// Has the process ended? It may be there still, for the supervisor to reap.
fn is_over(pid: i64) -> bool {
    // SAFETY: asks only; the descriptor is closed at once.
    unsafe {
        let fd = syscall!(nr::PIDFD_OPEN, pid, 0);
        if err::is(fd) {
            return fd == -3;
        }
        let mut poll = fd as u32 as u64 | 1 << 32;
        let ended = syscall!(nr::POLL, &raw mut poll, 1, 0) == 1;
        syscall!(nr::CLOSE, fd);
        ended
    }
}
