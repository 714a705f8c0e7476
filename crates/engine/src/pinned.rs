//! Calls in which the kernel may make pages of the program writable without taking a page fault there: it pins the pages
//! (O_DIRECT and file systems like it, shared futexes, drivers) and writes to them behind the page tables.
//!
//! What a call may touch is noted before it is issued, and looked at by every commit until the first one after the call.

use crate::dispatch::Call;
use crate::futexes;
use crate::state::engine;
use crate::sys::nr;
use crate::thread::{self, Thread};
use crate::user;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use outlast_calls::{written, Told};

const RANGES: usize = 16;
/// Types of ioctl requests that copy: terminals and descriptors, sockets.
const COPYING: [u64; 2] = [0x54, 0x89];

const IO_GETEVENTS: u64 = 208;
const IO_SUBMIT: u64 = 209;
const VMSPLICE: u64 = 278;
const RECVMMSG: u64 = 299;
const PROCESS_VM_WRITEV: u64 = 311;
const IO_PGETEVENTS: u64 = 333;

/// Does the call pin pages, and would not be noted, since it goes straight through the gate?
pub fn goes_straight(nr: u64) -> bool {
    matches!(nr, nr::PREAD64 | nr::PREADV) || futexes::NUMBERS.contains(&nr)
}

// Not a part of the engine's state: noted deep in calls that were handed parts of that.
static STARTS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static ENDS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Anything may have been touched.
static ANYWHERE: AtomicBool = AtomicBool::new(false);
/// Threads in a call that was noted.
static IN_CALL: AtomicUsize = AtomicUsize::new(0);

/// The call is about to be issued as it is.
#[inline]
pub fn note(call: &Call) {
    let a = &call.args;
    match call.nr {
        nr::READ | nr::PREAD64 | nr::READV | nr::PREADV if copies(call.fd()) => {}
        nr::READ | nr::PREAD64 => add(a[1], a[1].saturating_add(a[2])),
        nr::READV | nr::PREADV | nr::PREADV2 | nr::RECVFROM | nr::RECVMSG | RECVMMSG | VMSPLICE => add_written(call),
        n if futexes::NUMBERS.contains(&n) && !futexes::is_private(call) => {
            futexes::each(call, |at, len| add(at, at.saturating_add(len)));
        }
        nr::IOCTL if !COPYING.contains(&(a[1] >> 8 & 0xff)) => add_everything(),
        IO_SUBMIT | IO_GETEVENTS | IO_PGETEVENTS | PROCESS_VM_WRITEV => add_everything(),
        _ => {}
    }
}

/// Is what a read of this descriptor gives copied to the program's memory?
fn copies(fd: i32) -> bool {
    // SAFETY: at the gate, in no part of the engine that looks at the table of descriptors.
    unsafe { engine() }.fds.copies(fd)
}

#[cold]
fn add_written(call: &Call) {
    let told = outlast_calls::row(call.nr).map_or(Told::Partly, |row| {
        written(row, &call.args, &user::Program, |at, len| add(at, at.saturating_add(len)))
    });
    if told == Told::Partly {
        add_everything();
    }
}

/// The running thread's call is noted.
fn begin() {
    // SAFETY: at the gate.
    let t = unsafe { thread::current() };
    if !t.pins {
        t.pins = true;
        IN_CALL.fetch_add(1, Relaxed);
    }
}

fn add_everything() {
    begin();
    ANYWHERE.store(true, Relaxed);
}

fn add(start: u64, end: u64) {
    begin();
    let n = COUNT.load(Relaxed);
    for i in 0..n {
        let (low, high) = (STARTS[i].load(Relaxed), ENDS[i].load(Relaxed));
        if start <= high && low <= end {
            STARTS[i].store(low.min(start), Relaxed);
            ENDS[i].store(high.max(end), Relaxed);
            return;
        }
    }
    if n == RANGES {
        ANYWHERE.store(true, Relaxed);
        return;
    }
    STARTS[n].store(start, Relaxed);
    ENDS[n].store(end, Relaxed);
    COUNT.store(n + 1, Relaxed);
}

/// The call at the gate is over.
#[inline]
pub fn call_ended(t: &mut Thread) {
    if t.pins {
        t.pins = false;
        IN_CALL.fetch_sub(1, Relaxed);
    }
}

/// Is there nothing to look at?
#[inline]
pub fn is_empty() -> bool {
    COUNT.load(Relaxed) == 0 && !is_anywhere()
}

/// Must everything be looked at?
#[inline]
pub fn is_anywhere() -> bool {
    ANYWHERE.load(Relaxed)
}

/// Is the page one to be looked at?
pub fn contains(page: u64) -> bool {
    is_anywhere() || ranges().any(|(start, end)| start < page + 4096 && page < end)
}

/// What is to be looked at.
pub fn ranges() -> impl Iterator<Item = (u64, u64)> {
    (0..COUNT.load(Relaxed)).map(|i| (STARTS[i].load(Relaxed), ENDS[i].load(Relaxed)))
}

/// It was looked at. In the middle of a call it is kept for the next time.
pub fn looked_at() {
    if IN_CALL.load(Relaxed) == 0 {
        COUNT.store(0, Relaxed);
        ANYWHERE.store(false, Relaxed);
    }
}

/// A fresh process, or one set back: there is no call.
pub fn forget() {
    IN_CALL.store(0, Relaxed);
    // SAFETY: at start or in a restore.
    unsafe { thread::current() }.pins = false;
    looked_at();
}
