//! Memory that several processes of a tree map: what a fork leaves shared.
//!
//! Others see what is written there at once, so that each write is an event that is seen from outside, and the commit that covers it may
//! not come later: a process that went back behind it would count twice, or wait for a lock that it holds itself. From the first fork on,
//! such memory cannot be written to. A write traps, is made by itself while its process holds the group's lock, and committed before anybody
//! else may write; whoever dies in between leaves behind what was there before, which its successor puts back ([`header`]). Nothing that
//! is the group's is rolled back otherwise.
//!
//! The engine makes the write ([`made`]) by a mapping of its own ([`alias`]). An instruction that it does not know the processor makes, in
//! a page that is opened for it, and traps once more ([`step`]).
//!
//! Anonymous memory becomes that of a file without a name at the fork, so that a process made later can map it.
//!
//! Files that the program maps shared and has alone trap as well, but only once between two commits, and go back with it ([`undone`]).

mod alias;
mod convert;
mod header;
mod made;
mod step;
mod table;
pub mod undone;

pub use convert::CONVERTED;
pub use header::{header, is_there, map, settle};
pub use step::{answer, is_amid, reset};
pub use table::{SharedMemory, Shown};

use crate::anchor;
use crate::dispatch::{self, Call};
use crate::regions::{self, Mapped};
use crate::state::{engine, Engine};
use crate::sys::{nr, syscall};
use crate::thread::{pending_bit, Thread};
use crate::user;
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_calls::{look, written, Told};
use outlast_image::region::{backing, region_flag, Region};
use table::Range;

const PROT_WRITE: u32 = 2;

/// Is there any, in this process, or a file that goes back with it?
#[inline(always)]
pub fn is_on() -> bool {
    // SAFETY: a look at a number.
    unsafe { !engine().shared_memory.is_empty() }
}

/// The process is about to be copied: from here on what it maps shared is the group's. False: that cannot be had, and a child cannot be
/// kept.
pub fn share(e: &mut Engine) -> bool {
    let (mut found, mut count) = ([Region::default(); table::ROOM], 0);
    let mut fits = true;
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        if is_to_be_shared(&m) {
            fits &= count < found.len();
            if fits {
                found[count] = m.region;
                count += 1;
            }
        }
    });
    let found = &found[..count];
    if !fits || count > 0 && !is_there() || !convert::anonymous(e, found) {
        return false;
    }
    if count > 0 {
        // Before anything is protected: what follows may come to its end halfway.
        e.maps_dirty = true;
        dispatch::slow_down_writing();
    }
    let mut has_segments = false;
    for region in found {
        if region.backing == backing::SEGMENT {
            convert::is_no_more_its_own(e, region);
            has_segments = true;
        }
        if !enter(e, region.start, region.end, region.prot) {
            return false;
        }
        protect(region.start, region.end, region.prot & !PROT_WRITE);
    }
    if has_segments {
        // A removed segment dies with the last process that has it attached: an anchor has to.
        anchor::renew();
    }
    true
}

/// A device's memory is not the program's to be committed.
fn is_to_be_shared(m: &Mapped<'_>) -> bool {
    let r = &m.region;
    let is_device = m.path.starts_with(b"/dev/") && !m.path.starts_with(b"/dev/shm/");
    let is_new = r.flags & region_flag::GROUP == 0;
    match r.backing {
        backing::SHARED_ANONYMOUS => true,
        backing::SEGMENT => r.prot & PROT_WRITE != 0 && is_new,
        backing::SHARED_FILE => r.prot & PROT_WRITE != 0 && !is_device && is_new,
        _ => false,
    }
}

/// A region of the commit, the group's, is mapped again.
pub fn recall(e: &mut Engine, region: &Region) {
    enter(e, region.start, region.end, region.prot);
    protect(region.start, region.end, region.prot & !PROT_WRITE);
    dispatch::slow_down_writing();
}

/// The process is a copy of its parent, which has all that the program maps, but no alias.
pub fn was_copied(e: &mut Engine) {
    // What is not the group's is to be written to no more than it was: a child has all files together with its parent.
    for range in e.shared_memory.take().filter(|range| range.undone.is_none()) {
        let alias = alias::make(e, range.start, range.end);
        e.shared_memory.put(Range { alias, ..range });
    }
}

/// Notes what is mapped there as the group's. False: there is no room.
fn enter(e: &mut Engine, start: u64, end: u64, prot: u32) -> bool {
    unmapped(e, start, end);
    let alias = alias::make(e, start, end);
    e.shared_memory.put(Range { start, end, prot, alias, undone: None })
}

/// The program maps nothing of the group's there any more.
pub fn unmapped(e: &mut Engine, start: u64, end: u64) {
    e.shared_memory.each(start, end, alias::drop);
    e.shared_memory.remove(start, end);
}

/// Nothing that traps is mapped any more.
pub fn forget(e: &mut Engine) {
    alias::drop_all();
    e.shared_memory.clear();
}

/// The program has given memory another protection.
pub fn protected(e: &mut Engine, start: u64, end: u64, prot: u32) {
    e.shared_memory.protect(start, end, prot);
    close(e, start, end);
}

/// What lay at `old` lies at `new`, or at both.
pub fn moved(e: &mut Engine, old: (u64, u64), new: (u64, u64), keeps_old: bool) {
    let Some(range) = e.shared_memory.find(old.0) else { return };
    if !keeps_old {
        unmapped(e, old.0, old.1);
    }
    match range.part(old.0, old.1).undone {
        None => _ = enter(e, new.0, new.1, range.prot),
        undone => {
            unmapped(e, new.0, new.1);
            e.shared_memory.put(Range { start: new.0, end: new.1, undone, ..range });
        }
    }
    close(e, new.0, new.1);
}

/// The program goes on without the engine, or ends: the kernel may write there for it.
pub fn give_back(e: &mut Engine) {
    e.shared_memory.each(0, u64::MAX, |range| protect(range.start, range.end, range.prot));
    forget(e);
}

/// Lets who cannot be trapped write in the page: the engine itself, the kernel in a call, a child that shares all memory. Until
/// [`close_opened`].
fn open(e: &mut Engine, start: u64, end: u64) -> bool {
    let mut any = false;
    e.shared_memory.each_of_group(start, end, |range| {
        protect(range.start, range.end, range.prot);
        any = true;
    });
    e.shared_memory.is_open |= any;
    any
}

fn close(e: &mut Engine, start: u64, end: u64) {
    e.shared_memory.each(start, end, |range| protect(range.start, range.end, range.prot & !PROT_WRITE));
}

/// Calls under way, of several threads maybe, for which something was opened.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Issues a call, the kernel being allowed to write to what is the group's.
pub fn around(call: &Call, issue: impl Fn() -> i64) -> i64 {
    if !is_on() {
        return issue();
    }
    CALLS.fetch_add(1, SeqCst);
    let mut is_lent = false;
    let is_open = open_for(call, &mut is_lent);
    let r = issue();
    CALLS.fetch_sub(1, SeqCst);
    if is_lent {
        undone::returned();
    }
    if is_open {
        // SAFETY: at the gate.
        close_opened(unsafe { engine() });
    }
    r
}

/// What was opened traps again.
pub fn close_opened(e: &mut Engine) {
    if CALLS.load(SeqCst) == 0 && core::mem::take(&mut e.shared_memory.is_open) {
        e.shared_memory.each_of_group(0, u64::MAX, |range| protect(range.start, range.end, range.prot & !PROT_WRITE));
    }
}

/// Opens the page for one that is not in the program's own code. False: it is none that traps.
pub fn open_for_engine(t: &Thread, address: u64) -> bool {
    // SAFETY: in a handler, which touches only what nobody keeps over an access to the program's memory.
    let e = unsafe { engine() };
    if let Some(range) = e.shared_memory.find(address).filter(|range| range.undone.is_some()) {
        // The journal may be in use.
        undone::release(e, &range);
        return true;
    }
    let any = open(e, address & !4095, (address & !4095) + 4096);
    if any {
        // It is closed on the way out.
        t.pending.fetch_or(pending_bit::REQUEST, Release);
    }
    any
}

/// Opens what the kernel may write to in this call, and notes if any of that goes back with the program. False: nothing of the group's.
fn open_for(call: &Call, is_lent: &mut bool) -> bool {
    const FUTEX_READ_ONLY: [u64; 6] = [0, 1, 3, 4, 9, 10];
    if call.nr == nr::FUTEX && FUTEX_READ_ONLY.contains(&(call.args[1] & 127)) {
        return false;
    }
    let row = look(call.nr, &call.args);
    if call.nr != nr::MADVISE && row.as_ref().is_some_and(|row| row.outs().is_empty()) {
        return false;
    }
    // SAFETY: at the gate.
    let e = unsafe { engine() };
    let mut any = call.args.into_iter().any(|at| open(e, at & !4095, (at & !4095) + 4096));
    let mut told = |start: u64, len: u64| {
        if len > 0 {
            let end = start.saturating_add(len);
            any |= open(e, start & !4095, end.saturating_add(4095) & !4095);
            undone::lend(e, (start, end), is_lent);
        }
    };
    let all = match row {
        Some(row) => written(row, &call.args, &user::Program, &mut told) == Told::All,
        None => false,
    };
    if !all {
        // How far it writes is not known.
        for at in call.args {
            undone::lend_all_at(e, at, is_lent);
        }
        if any {
            open(e, 0, u64::MAX);
        }
    }
    any
}

fn protect(start: u64, end: u64, prot: u32) {
    let _ = try_protect(start, end, prot);
}

/// False: there are too many mappings.
fn try_protect(start: u64, end: u64, prot: u32) -> bool {
    // SAFETY: memory of which the table says what the program wants there.
    unsafe { syscall!(nr::MPROTECT, start, end - start, prot) == 0 }
}
