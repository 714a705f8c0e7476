//! Pages that stay writable because the kernel writes there whenever it likes: where threads have their restartable sequences, and
//! what it has yet to write for those that wait in a call. If it found them armed it would have consumed what it cannot write any more.
//!
//! They count as written at every commit. Which they are follows from the control blocks of the threads, which change while their
//! thread has the engine's lock; who uses the table has it, too.

use crate::kernel_writes;
use crate::scratch;
use crate::sorted::{ranged, Sorted};
use crate::thread;
use crate::tracker::areas;
use crate::tracker::open_pages;
use crate::world;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

const PAGE: u64 = 4096;
/// Ranges that fit; those beyond them are kept open together with what lies between them and the next.
const ROOM: usize = 8192;
/// Bytes of the table, its count included.
pub const LEN: u64 = PAGE + (ROOM * core::mem::size_of::<Range>()) as u64;

/// Has a thread begun or ended such a call, or ended itself, since the table was made?
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// Whole pages.
#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
}

ranged!(Range);

fn table() -> Sorted<'static, Range> {
    let (start, len) = scratch::tracker();
    let at = start + len - LEN;
    // SAFETY: lies in the engine's working memory, zeroed when that was mapped; the lock's holder has it alone, and keeps it no longer
    // than to its next call of this module.
    unsafe { Sorted::new(core::slice::from_raw_parts_mut((at + PAGE) as *mut Range, ROOM), &mut *(at as *mut usize)) }
}

/// Threads wait in other calls from now on, or there are others.
pub fn threads_changed() {
    HAS_CHANGED.store(true, Relaxed);
}

/// A process that was just begun.
pub fn clear() {
    table().remove(0, u64::MAX);
}

/// Adds what lies in `start..end`, a part of a page or many.
pub fn add(start: u64, end: u64) {
    let mut table = table();
    let (mut start, mut end) = (start & !(PAGE - 1), end.saturating_add(PAGE - 1) & !(PAGE - 1));
    let mut first = table.all().partition_point(|range| range.end < start);
    let mut last = table.all().partition_point(|range| range.start <= end);
    if first == last && table.all().len() == ROOM {
        first = first.saturating_sub(1);
        last = first + 1;
    }
    if first < last {
        (start, end) = (start.min(table.all()[first].start), end.max(table.all()[last - 1].end));
    }
    table.splice(first, last, &[Range { start, end }]);
}

/// Nothing is mapped there any more.
pub fn remove(start: u64, end: u64) {
    table().remove(start, end);
}

/// What threads have the kernel write is looked at again if need be. What was open until now may have been written.
fn follow() {
    if !world::has_several() || !HAS_CHANGED.swap(false, Relaxed) {
        return;
    }
    note();
    clear();
    world::each(|place| {
        // SAFETY: only what changes with the lock.
        let t = unsafe { thread::at(place) };
        if t.rseq[0] != 0 {
            add_tracked(t.rseq[0], 1);
        }
        if t.awaits {
            kernel_writes::each_out(&t.awaited, &mut add_tracked);
        }
    });
}

/// Adds what of it may be armed: a program may have the kernel write anywhere.
fn add_tracked(start: u64, len: u64) {
    areas::each(start, start.saturating_add(len), |part| {
        if part.is_tracked() {
            add(part.start, part.end);
        }
    });
}

fn note() {
    for n in 0..table().all().len() {
        let range = table().all()[n];
        areas::each(range.start, range.end, |part| {
            if part.is_tracked() {
                open_pages::note(part.start, part.end, true, true);
            }
        });
    }
}

/// Has all of it count as written.
pub fn note_written() {
    follow();
    note();
}

/// Is there a page that `is_known` does not hold for?
pub fn any_but(is_known: impl Fn(u64) -> bool) -> bool {
    follow();
    table().all().iter().flat_map(|range| (range.start..range.end).step_by(PAGE as usize)).any(|page| !is_known(page))
}

/// Is the page one of them?
pub fn contains(page: u64) -> bool {
    any_in(page, page + PAGE)
}

/// Does any lie in the range?
pub fn any_in(start: u64, end: u64) -> bool {
    follow();
    let table = table();
    table.all().get(table.index(start)).is_some_and(|range| range.start < end)
}

/// Calls `f` with the parts of `start..end` in which none lies.
pub fn around(start: u64, end: u64, mut f: impl FnMut(u64, u64)) {
    follow();
    let mut at = start;
    while at < end {
        let table = table();
        let next = table.all().get(table.index(at)).copied().unwrap_or(Range { start: end, end });
        if at < next.start {
            f(at, next.start.min(end));
        }
        at = next.end;
    }
}
