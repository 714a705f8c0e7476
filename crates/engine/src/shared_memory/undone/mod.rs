//! Files, with a name or on a disk, that the program maps shared while nobody else has them open: what is written there goes back to the
//! commit with the program.
//!
//! From one commit to the next such memory cannot be written to. A write traps; the page is noted in the journal as it is ([`undo`]), and
//! can be written to until the next commit. Pages that are written to one after the other are opened several at a time. A commit finds
//! nothing to save: what is in the page is the file's.
//!
//! As soon as somebody else has the file open, or may have it, it is theirs as well: what is written there stays written.

mod mapping;
mod opened;

pub use mapping::{map, mapped};
pub use opened::Opened;

use super::table::Range;
use super::{protect, try_protect, PROT_WRITE};
use crate::commit::commit_stopped;
use crate::control::{degrade, phase};
use crate::frame::Ucontext;
use crate::handlers::keep_context;
use crate::held_files;
use crate::native;
use crate::state::{engine, Engine};
use crate::thread::{self, standing, Thread};
use crate::undo::{self, Noting};
use crate::world;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use outlast_image::context::PendingCall;
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::layout::PAGE;

/// As many are noted at a time.
const PIECE: u64 = 1 << 20;
/// Which part of which file is mapped: the place of the engine's descriptor, and an offset.
#[derive(Clone, Copy)]
pub struct Part {
    place: usize,
    offset: u64,
}

impl Part {
    pub fn is_of(&self, place: usize) -> bool {
        self.place == place
    }

    /// What lies as many bytes further on.
    pub fn from(self, skipped: u64) -> Part {
        Part { offset: self.offset + skipped, ..self }
    }
}

/// Calls under way, of several threads maybe, for which something was opened.
static LENT: AtomicU32 = AtomicU32::new(0);

/// Why memory could not be opened.
enum Failure {
    /// A commit makes room.
    Full,
    /// What is written there stays written.
    Kept,
}

/// Notes what is in `start..end`, and lets the program write there.
fn open(e: &mut Engine, range: &Range, start: u64, end: u64) -> Result<(), Failure> {
    let part = range.part(start, end);
    let Some(Part { place, offset }) = part.undone else { return Ok(()) };
    let fd = held_files::number(e.fds.own, place);
    let mut from = 0;
    while from < end - start {
        let to = (from + PIECE).min(end - start);
        match undo::note_mapped(e, fd, offset + from, offset + to) {
            Noting::Done => {}
            Noting::Full => return Err(Failure::Full),
            Noting::Kept => return Err(Failure::Kept),
        }
        from = to;
    }
    if !e.shared_memory.opened.add(start, end) {
        return Err(Failure::Full);
    }
    // There may be too many mappings.
    try_protect(start, end, range.prot).then_some(()).ok_or(Failure::Kept)
}

/// What is written to the file of the range stays written from now on.
pub fn release(e: &mut Engine, range: &Range) {
    let Some(Part { place, .. }) = range.undone else { return };
    while let Some(range) = e.shared_memory.of_place(place) {
        protect(range.start, range.end, range.prot);
        e.shared_memory.remove(range.start, range.end);
        if range.prot & PROT_WRITE != 0 {
            degrade(Degradation::SharedMapping);
        }
    }
    // Its name may be needed after all.
    e.maps_dirty = true;
}

/// The same for all files.
pub fn release_all(e: &mut Engine) {
    while let Some(range) = e.shared_memory.first_undone(0, u64::MAX) {
        release(e, &range);
    }
}

/// The program's own instruction has trapped at `address`.
///
/// # Safety
/// In the handler whose frame `uc` is.
pub unsafe fn answer(e: &mut Engine, t: &mut Thread, uc: &mut Ucontext, address: u64) {
    keep_context(t, uc);
    if world::has_several() {
        world::arrive(t, standing::AT_REST);
        world::lock(t);
        if native::is_everywhere() {
            return super::step::depart(t);
        }
    }
    let page = address & !(PAGE - 1);
    // Others may have unmapped it meanwhile.
    let is_one = |range: &Range| range.undone.is_some() && range.prot & PROT_WRITE != 0;
    if let Some(range) = e.shared_memory.find(address).filter(is_one) {
        let end = range.end.min(page + e.shared_memory.opened.ahead(page));
        let mut opened = open(e, &range, page, end);
        if matches!(opened, Err(Failure::Full)) && commit_here(e, t) {
            opened = open(e, &range, page, page + PAGE);
        }
        if opened.is_err() && !native::is_everywhere() {
            release(e, &range);
        }
    }
    super::step::depart(t);
    if native::is_everywhere() {
        native::leave_frame(t, uc);
        return;
    }
    phase(at::PROGRAM);
}

/// False: protection has ended.
fn commit_here(e: &mut Engine, t: &mut Thread) -> bool {
    world::stop(t);
    let seq = commit_stopped(e, t, PendingCall::default());
    world::resume();
    t.is_fresh = true;
    seq != 0
}

/// The kernel may write to `start..end` for a call that is about to be made; `is_lent`: something was opened for the call.
pub fn lend(e: &mut Engine, (start, end): (u64, u64), is_lent: &mut bool) {
    let (start, end) = (start & !(PAGE - 1), end.saturating_add(PAGE - 1) & !(PAGE - 1));
    if e.shared_memory.first_undone(start, end).is_none() {
        return;
    }
    locked(|| {
        if !core::mem::replace(is_lent, true) {
            LENT.fetch_add(1, SeqCst);
        }
        open_all(e, start, end);
    });
}

/// The engine is about to write to `len` bytes of the program's, at the gate.
#[inline]
pub fn writing(at: u64, len: u64) {
    if super::is_on() {
        write_at(at, len);
    }
}

fn write_at(at: u64, len: u64) {
    // SAFETY: this thread has the lock when it changes something.
    let e = unsafe { engine() };
    let (start, end) = (at & !(PAGE - 1), at.saturating_add(len).saturating_add(PAGE - 1) & !(PAGE - 1));
    if e.shared_memory.first_undone(start, end).is_some() {
        locked(|| open_all(e, start, end));
    }
}

fn locked(f: impl FnOnce()) {
    // SAFETY: at the gate.
    let t = unsafe { thread::current() };
    let is_unlocked = world::has_several() && !t.has_lock;
    if is_unlocked {
        world::lock(t);
    }
    f();
    if is_unlocked {
        world::unlock(t);
    }
}

/// Opens what of `start..end` the program may write to, or lets go of it.
pub fn open_all(e: &mut Engine, start: u64, end: u64) {
    let mut at = start;
    while let Some(range) = e.shared_memory.first_undone(at, end) {
        let (from, to) = (range.start.max(at), range.end.min(end));
        if range.prot & PROT_WRITE != 0 && open(e, &range, from, to).is_err() {
            release(e, &range);
        }
        at = to;
    }
}

/// The same where nothing is known but that `address` was given to the call.
pub fn lend_all_at(e: &mut Engine, address: u64, is_lent: &mut bool) {
    if let Some(range) = e.shared_memory.find(address).filter(|range| range.undone.is_some()) {
        lend(e, (range.start, range.end), is_lent);
    }
}

/// The call for which something was opened is over.
pub fn returned() {
    LENT.fetch_sub(1, SeqCst);
}

/// A commit begins, and the world stands still: what is written from now on is to be noted once more.
pub fn close(e: &mut Engine) {
    if e.shared_memory.opened.count == 0 || LENT.load(SeqCst) != 0 {
        return;
    }
    for i in 0..core::mem::take(&mut e.shared_memory.opened.count) {
        let (start, end) = e.shared_memory.opened.runs[i];
        e.shared_memory.each(start, end, |range| {
            if range.undone.is_some() {
                protect(range.start, range.end, range.prot & !PROT_WRITE);
            }
        });
    }
}

/// A commit was made. What is open for a call under way is noted anew.
pub fn committed(e: &mut Engine) {
    for i in 0..core::mem::take(&mut e.shared_memory.opened.count) {
        // What is opened again takes no more room than what was open.
        let (start, end) = e.shared_memory.opened.runs[i];
        open_all(e, start, end);
    }
}

/// Nobody is in a call in a process that was just made.
pub fn reset(e: &mut Engine) {
    LENT.store(0, SeqCst);
    close(e);
}
