//! Several threads in one engine.
//!
//! One lock stands for everything the engine knows: who serves a call holds it, except while the call waits in the kernel. A
//! thread that does not run the program's code *stands still*: its control block says where it goes on, and it cannot get back
//! to the program while the world is stopped. A commit stops the world: threads in the program's code are knocked at and park
//! in the handler; all others stand still already and are left alone, so that threads that wait cost a commit nothing.
//!
//! With one thread none of this is used, and costs a look at one word.

use crate::control::control;
use crate::lock;
use crate::mutant::without;
use crate::signals::SIGENGINE;
use crate::sys::{err, nr, syscall, tsc};
use crate::thread::{self, standing, Thread};
use crate::tracker;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use outlast_image::layout::{THREADS, THREADS_BASE, THREAD_LEN};
use outlast_image::mutant::Mutant;

/// Words of a bitmap of places.
pub const WORDS: usize = THREADS / 64;

/// Not 0: there is, or was, more than one thread.
static SEVERAL: AtomicU32 = AtomicU32::new(0);
/// 1: no thread may go back to the program, 2: and somebody may sleep.
static STOPPED: AtomicU32 = AtomicU32::new(0);
/// How often the world went on again.
static PASSED: AtomicU32 = AtomicU32::new(0);
/// Places that are taken.
static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// How many of its words have ever had a bit set.
static WORDS_USED: AtomicUsize = AtomicUsize::new(0);

/// How often a thread is looked at before the committing one sleeps.
const LOOKS: u32 = 400;
/// How often a thread in the program's code is looked at before it is knocked at: one that makes call after call comes by itself,
/// sooner than a signal could make it.
const LOOKS_BEFORE_KNOCKING: u32 = 40;
/// How often in a row a thread may have been knocked at, and is still looked at before.
const MOST_IN_VAIN: u32 = 2;
/// How long a thread that was knocked at is waited for before it is knocked at again.
const PATIENCE: [u64; 2] = [0, 20_000_000];

/// May there be other threads?
#[inline(always)]
pub fn has_several() -> bool {
    SEVERAL.load(Relaxed) != 0
}

/// Takes the lock of the engine.
#[inline]
pub fn lock(t: &mut Thread) {
    if has_several() {
        lock::take();
        locked(t);
    }
}

/// Takes the lock if it is free. There are several threads.
pub fn try_lock(t: &mut Thread) -> bool {
    let taken = lock::try_take();
    if taken {
        locked(t);
    }
    taken
}

/// The thread has taken the lock.
pub fn locked(t: &mut Thread) {
    t.has_lock = true;
    // Whoever had it before may have committed where this thread stood; now it is about to go on.
    t.is_fresh = true;
}

/// Gives the lock of the engine back.
#[inline]
pub fn unlock(t: &mut Thread) {
    if has_several() {
        t.has_lock = false;
        lock::give();
    }
}

fn sleep(word: &AtomicU32, value: u32, at_most: Option<&[u64; 2]>) -> i64 {
    const FUTEX_WAIT_PRIVATE: u64 = 128;
    let time = at_most.map_or(core::ptr::null(), |time| time.as_ptr());
    // SAFETY: word and time lie in memory for the length of the call.
    unsafe { syscall!(nr::FUTEX, word.as_ptr(), FUTEX_WAIT_PRIVATE, value, time) }
}

fn wake(word: &AtomicU32, most: i32) {
    const FUTEX_WAKE_PRIVATE: u64 = 129;
    // SAFETY: wakes only.
    unsafe { syscall!(nr::FUTEX, word.as_ptr(), FUTEX_WAKE_PRIVATE, most) };
}

/// The thread has left the program's code, and goes on as `how` says.
#[inline]
pub fn arrive(t: &mut Thread, how: u32) {
    if t.standing.load(Relaxed) == standing::RUNNING {
        t.passed = PASSED.load(SeqCst);
    }
    stand(t, how);
}

fn stand(t: &mut Thread, how: u32) {
    t.fs_base = thread::fs_base();
    t.is_fresh = true;
    if how == standing::IN_CALL {
        t.knocked.store(0, Relaxed);
    }
    t.standing.swap(how, SeqCst);
    if STOPPED.load(SeqCst) != 0 {
        wake(&t.standing, i32::MAX);
    }
}

/// The thread, whose registers are those with which it goes on, is about to go back to the program.
#[inline]
pub fn depart(t: &mut Thread) {
    loop {
        t.standing.swap(standing::RUNNING, SeqCst);
        if STOPPED.load(SeqCst) == 0 {
            t.is_in_doubt |= has_missed(t);
            return;
        }
        stand(t, standing::AT_REST);
        while STOPPED.load(Acquire) != 0 {
            let _ = STOPPED.compare_exchange(1, 2, Acquire, Relaxed);
            sleep(&STOPPED, 2, None);
        }
    }
}

/// Has the world been stopped since the thread came to stand still?
fn has_missed(t: &Thread) -> bool {
    t.passed != PASSED.load(SeqCst)
}

/// Calls `f` with the page of each thread that a commit may have armed in vain, and that the thread may have written to since. The
/// caller commits; the world is stopped.
///
/// The kernel writes to a thread's restartable sequence whenever it moves to another processor, also while the thread stands still. If
/// that meets an armed page, the fault may have begun before a commit looks for faults, and make the page writable when it has been
/// armed again. Nobody learns of what the thread writes there later.
pub fn each_in_doubt(own: &mut Thread, mut f: impl FnMut(u64)) {
    each(|place| {
        // SAFETY: the thread stands still.
        let t = unsafe { thread::at(place) };
        if t.is_fresh && (t.is_in_doubt || has_missed(t)) && t.rseq[0] != 0 {
            t.is_in_doubt = false;
            f(t.rseq[0] & !4095);
        }
    });
    // Its own faults are over.
    own.passed = PASSED.load(SeqCst).wrapping_add(1);
}

/// Makes all other threads stand still until [`resume`]. The caller holds the lock.
#[inline]
pub fn stop(t: &Thread) {
    if has_several() && !without(Mutant::ThreadStop) {
        stop_others(t);
    }
}

fn stop_others(t: &Thread) {
    let (c, began) = (control(), tsc());
    STOPPED.store(1, SeqCst);
    let own = t.place;
    each(|place| {
        // SAFETY: only atomics, and an id that does not change while the lock is held.
        let other = unsafe { thread::at(place) };
        if place != own && !comes(other) {
            add(&c.knocks, 1);
            knock(other.real_tid);
        }
    });
    each(|place| {
        if place != own {
            // SAFETY: as above.
            await_stop(unsafe { thread::at(place) });
        }
    });
    add(&c.stops, 1);
    add(&c.stop_ticks, tsc() - began);
}

/// Calls `f` while all other threads stand still: they are stopped for that if they are not yet. The caller holds the lock.
pub fn while_stopped<R>(t: &Thread, f: impl FnOnce() -> R) -> R {
    let stood = STOPPED.load(SeqCst) != 0;
    if !stood {
        stop(t);
    }
    let r = f();
    if !stood {
        resume();
    }
    r
}

/// Counts what only the holder of the lock counts.
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Does the thread stand still? One that the engine has left alone does not come any more.
fn stands(other: &Thread) -> bool {
    // SAFETY: a thread writes its own word.
    other.standing.load(SeqCst) != standing::RUNNING || unsafe { (&raw const other.native).read_volatile() } != 0
}

/// Does the thread stand still, or come to by itself?
fn comes(other: &Thread) -> bool {
    if stands(other) {
        return true;
    }
    let in_vain = other.knocked.load(Relaxed);
    let came = in_vain < MOST_IN_VAIN
        && (0..LOOKS_BEFORE_KNOCKING).any(|_| {
            core::hint::spin_loop();
            stands(other)
        });
    if !came {
        other.knocked.store(in_vain.saturating_add(1), Relaxed);
    }
    came
}

fn await_stop(other: &Thread) {
    loop {
        for _ in 0..LOOKS {
            if stands(other) {
                return;
            }
            core::hint::spin_loop();
        }
        if sleep(&other.standing, standing::RUNNING, Some(&PATIENCE)) == err::ETIMEDOUT {
            knock(other.real_tid);
        }
    }
}

/// Has the thread come into the engine.
pub fn knock(tid: u32) {
    // SAFETY: a signal that the engine handles, to a thread of this process.
    unsafe { syscall!(nr::TGKILL, syscall!(nr::GETPID), tid, SIGENGINE) };
}

/// Has calls in which other threads wait made again.
pub fn knock_at_others(t: &Thread) {
    if has_several() {
        each(|place| {
            if place != t.place {
                // SAFETY: an id that does not change while the lock is held.
                knock(unsafe { thread::at(place) }.real_tid);
            }
        });
    }
}

/// Lets the threads go on that [`stop`] stopped.
#[inline]
pub fn resume() {
    if !has_several() {
        return;
    }
    PASSED.store(PASSED.load(Relaxed).wrapping_add(1), SeqCst);
    if STOPPED.swap(0, SeqCst) == 2 {
        wake(&STOPPED, i32::MAX);
    }
}

/// Calls `f` with the place of every thread.
pub fn each(mut f: impl FnMut(u32)) {
    for (n, word) in TAKEN.iter().take(WORDS_USED.load(Relaxed)).enumerate() {
        let mut bits = word.load(Relaxed);
        while bits != 0 {
            f(n as u32 * 64 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

/// Place and kernel's id of the first thread for which `is_wanted` holds.
pub fn find(is_wanted: impl Fn(&Thread) -> bool) -> Option<(u32, u32)> {
    let mut found = None;
    if has_several() {
        each(|place| {
            // SAFETY: ids and places do not change while the lock is held.
            let t = unsafe { thread::at(place) };
            if found.is_none() && is_wanted(t) {
                found = Some((place, t.real_tid));
            }
        });
    }
    found
}

/// How many threads there are.
pub fn count() -> u32 {
    TAKEN.iter().map(|word| word.load(Relaxed).count_ones()).sum()
}

/// The places that are taken, as a commit keeps them.
pub fn taken() -> [u64; WORDS] {
    core::array::from_fn(|n| TAKEN[n].load(Relaxed))
}

/// A thread has this place from now on.
pub fn settle(place: u32) {
    WORDS_USED.fetch_max(place as usize / 64 + 1, Relaxed);
    TAKEN[place as usize / 64].fetch_or(1 << (place % 64), Relaxed);
    tracker::threads_changed();
}

/// The thread with this place ends.
pub fn leave(place: u32) {
    TAKEN[place as usize / 64].fetch_and(!(1 << (place % 64)), Relaxed);
    tracker::threads_changed();
}

/// A fresh process image, or one that becomes another: one thread, which stands in no other's way.
pub fn reset() {
    lock::reset();
    for word in [&SEVERAL, &STOPPED] {
        word.store(0, Relaxed);
    }
    TAKEN.iter().for_each(|word| word.store(0, Relaxed));
    WORDS_USED.store(0, Relaxed);
}

/// Not 0: there is room for threads. It stays when the program goes back to when it had one thread, also in a process whose anchor
/// was cloned later.
static HAS_ROOM: AtomicU32 = AtomicU32::new(0);

/// Maps room for threads, in place of what a predecessor may have had; what somebody else has there is left alone.
pub fn map_room(is_restored: bool) -> Result<(), i64> {
    const NORESERVE_PRIVATE_ANONYMOUS: u64 = 0x4000 | 0x02 | 0x20;
    let is_ours = is_restored || HAS_ROOM.load(Relaxed) != 0;
    let fixed: u64 = if is_ours { 0x10 } else { 0x10_0000 };
    let len = THREADS as u64 * THREAD_LEN;
    // SAFETY: the range is the engine's own.
    let r = unsafe { syscall!(nr::MMAP, THREADS_BASE, len, 3, NORESERVE_PRIVATE_ANONYMOUS | fixed, -1i64, 0) };
    if r != THREADS_BASE as i64 {
        return Err(r);
    }
    HAS_ROOM.store(1, Relaxed);
    // SAFETY: MADV_DONTDUMP changes no content.
    unsafe { syscall!(nr::MADVISE, THREADS_BASE, len, 16) };
    Ok(())
}

/// From now on there may be several threads; the caller, who was alone, holds the lock.
pub fn begin(t: &mut Thread) {
    lock::hold();
    t.has_lock = true;
    settle(t.place);
    SEVERAL.store(1, Release);
}

/// Where the places that are taken are noted, for who looks on from outside.
pub fn taken_address() -> u64 {
    TAKEN.as_ptr() as u64
}

/// A place that nobody has: its last thread, if there was one, is gone for the kernel, too.
pub fn free_place() -> Option<u32> {
    if !has_several() {
        return None;
    }
    (1..THREADS as u32).find(|&place| {
        let is_taken = TAKEN[place as usize / 64].load(Relaxed) >> (place % 64) & 1 != 0;
        // SAFETY: the place is mapped and nobody's; a signal 0 has no effect.
        !is_taken
            && unsafe {
                let tid = thread::at(place).real_tid;
                tid == 0 || err::is(syscall!(nr::TGKILL, syscall!(nr::GETPID), tid, 0))
            }
    })
}
