//! Futexes with priority inheritance: the kernel compares the thread ids in their words with those of the threads.
//!
//! A thread in FUTEX_LOCK_PI may be given the lock while it waits, in the word, and not have heard of it when the process
//! dies. So it stands in the middle of the call while it waits, and a restored one looks at the word first.
//!
//! Where restored threads have other ids than the program knows, the kernel would find nobody behind the words. There the engine
//! keeps the locks itself, by the words' own rules: only that waiters are woken in their order and lend nobody their priority.

use crate::dispatch::{interruptible, Call};
use crate::numbers;
use crate::sys::{err, nr, syscall};
use crate::thread::{standing, Thread};
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::context::pending_kind;

pub const WAITERS: u32 = 0x8000_0000;
pub const OWNER_DIED: u32 = 0x4000_0000;
pub const TID: u32 = 0x3fff_ffff;

const COMMAND: u64 = 0x7f;
const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;
const WAKE: u64 = 1;
const LOCK_PI: u64 = 6;
const UNLOCK_PI: u64 = 7;
const TRYLOCK_PI: u64 = 8;
const WAIT_BITSET: u64 = 9;
const LOCK_PI2: u64 = 13;
const EDEADLK: i64 = -35;

pub fn is_one(call: &Call) -> bool {
    call.nr == nr::FUTEX && matches!(call.args[1] & COMMAND, LOCK_PI | LOCK_PI2 | TRYLOCK_PI | UNLOCK_PI)
}

pub fn serve(t: &mut Thread, call: &Call) -> i64 {
    if call.args[0] % 4 != 0 {
        return err::EINVAL;
    }
    match call.args[1] & COMMAND {
        LOCK_PI | LOCK_PI2 => {
            t.pending_call = call.pending(pending_kind::WAITING);
            t.standing.store(standing::IN_PART, Release);
            let r = if numbers::differ() { lock(t, call) } else { interruptible(t, call) };
            t.standing.store(standing::IN_CALL, Release);
            r
        }
        _ if !numbers::differ() => interruptible(t, call),
        TRYLOCK_PI => try_lock(t, call.args[0], 0),
        _ => unlock(t, call),
    }
}

/// The call once more, after a restore: the lock may have been given to the thread.
pub fn again(t: &mut Thread, call: &Call) -> i64 {
    match user::read::<u32>(call.args[0]) {
        Some(value) if value & TID == t.tid && !matches!(call.args[1] & COMMAND, UNLOCK_PI) => 0,
        _ => serve(t, call),
    }
}

/// Takes a free lock: 0, or EAGAIN if somebody has it. `waiters`: what the word keeps saying of others that wait.
fn try_lock(t: &Thread, at: u64, waiters: u32) -> i64 {
    loop {
        let Some(value) = user::read::<u32>(at) else { return err::EFAULT };
        match value & TID {
            0 => {}
            own if own == t.tid => return EDEADLK,
            _ => return err::EAGAIN,
        }
        match user::swap(at, value, t.tid | waiters | value & (OWNER_DIED | WAITERS)) {
            Some(true) => return 0,
            Some(false) => {}
            None => return err::EFAULT,
        }
    }
}

fn lock(t: &mut Thread, call: &Call) -> i64 {
    let at = call.args[0];
    let clock = if call.args[1] & COMMAND == LOCK_PI { CLOCK_REALTIME } else { call.args[1] & CLOCK_REALTIME };
    let how = WAIT_BITSET | call.args[1] & PRIVATE | clock;
    let mut waiters = 0;
    loop {
        match try_lock(t, at, waiters) {
            err::EAGAIN => {}
            r => return r,
        }
        let Some(value) = user::read::<u32>(at) else { return err::EFAULT };
        let awaited = value | WAITERS;
        if value & TID == 0 || user::swap(at, value, awaited) != Some(true) {
            continue;
        }
        // From here on somebody else may wait as well.
        waiters = WAITERS;
        let wait = Call { nr: nr::FUTEX, args: [at, how, awaited as u64, call.args[3], 0, u32::MAX as u64] };
        match interruptible(t, &wait) {
            0 | err::EAGAIN => {}
            r => return r,
        }
    }
}

fn unlock(t: &Thread, call: &Call) -> i64 {
    let at = call.args[0];
    loop {
        match user::read::<u32>(at) {
            None => return err::EFAULT,
            Some(value) if value & TID != t.tid => return err::EPERM,
            Some(value) if user::swap(at, value, 0) == Some(false) => {}
            Some(_) => break,
        }
    }
    // SAFETY: wakes only.
    unsafe { syscall!(nr::FUTEX, at, WAKE | call.args[1] & PRIVATE, 1) };
    0
}
