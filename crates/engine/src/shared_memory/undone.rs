//! Files, with a name or on a disk, that the program maps shared while nobody else has them open: what is written there goes back to the
//! commit with the program.
//!
//! From one commit to the next such memory cannot be written to. A write traps; the page is noted in the journal as it is ([`undo`]), and
//! can be written to until the next commit. Pages that are written to one after the other are opened several at a time. A commit finds
//! nothing to save: what is in the page is the file's.
//!
//! As soon as somebody else has the file open, or may have it, it is theirs as well: what is written there stays written.

use super::table::Range;
use super::{protect, try_protect, PROT_WRITE};
use crate::commit::commit_stopped;
use crate::control::{degrade, phase};
use crate::descriptors::for_each_open;
use crate::frame::Ucontext;
use crate::handlers::keep_context;
use crate::held_files;
use crate::mutant::without;
use crate::native;
use crate::own_descriptors::Passing;
use crate::own_files;
use crate::proc;
use crate::regions::Mapped;
use crate::state::{engine, Engine};
use crate::sys::{futex_wait, nr, syscall};
use crate::thread::{self, standing, Thread};
use crate::undo::{self, Noting};
use crate::world;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use outlast_image::context::PendingCall;
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::layout::PAGE;
use outlast_image::mutant::Mutant;
use outlast_image::region::Region;

const MAP_SHARED_FIXED: u64 = 0x11;
const O_RDWR: u64 = 2;
/// As many bytes at most are opened at a time.
const MOST_AHEAD: u64 = 16 * PAGE;
/// As many are noted at a time.
const PIECE: u64 = 1 << 20;
const PATH_MAX: usize = 4096;
/// How often, and how long, a restore waits until nobody else has a file open that was the program's alone.
const NAPS: u32 = 50;
const NAP_NS: u64 = 1_000_000;

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

const RUNS: usize = 512;

/// What can be written to until the next commit.
pub struct Opened {
    runs: [(u64, u64); RUNS],
    count: usize,
}

impl Opened {
    pub const NONE: Opened = Opened { runs: [(0, 0); RUNS], count: 0 };

    /// False: there is no room.
    fn add(&mut self, start: u64, end: u64) -> bool {
        if let Some(last) = self.runs[..self.count].last_mut().filter(|last| last.0 <= start && start <= last.1) {
            last.1 = last.1.max(end);
            return true;
        }
        let fits = self.count < RUNS;
        if fits {
            self.runs[self.count] = (start, end);
            self.count += 1;
        }
        fits
    }

    /// How far to open from `page` on: twice as much as last time, if that ended there.
    fn ahead(&self, page: u64) -> u64 {
        match self.runs[..self.count].last() {
            Some(&(start, end)) if end == page => (end - start).min(MOST_AHEAD),
            _ => PAGE,
        }
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

/// The program has mapped a file shared. False: it is not one of these. Of a memfd the kernel does not tell who has it open.
pub fn mapped(e: &mut Engine, fd: i32, range: (u64, u64), offset: u64, prot: u32) -> bool {
    let has_name = undo::look_at(fd).is_ok_and(|look| look.links != 0);
    (has_name || !own_files::is_in_memory(fd)) && enter(e, fd, range, offset, prot)
}

fn enter(e: &mut Engine, fd: i32, (start, end): (u64, u64), offset: u64, prot: u32) -> bool {
    let Some(look) = undo::look_at(fd).ok().filter(|look| look.is_regular()) else { return false };
    if without(Mutant::MappedWrites) || !own_files::is_usable(fd, &[]) || undo::is_shared(e, &look.identity) {
        return false;
    }
    held_files::replace_idle(e, &look, fd);
    if !undo::is_open_once(fd) {
        return false;
    }
    let Some(place) = held_files::hold_unlocked(e, &look, fd) else { return false };
    super::unmapped(e, start, end);
    let is_noted = e.shared_memory.put(Range { start, end, prot, alias: 0, undone: Some(Part { place, offset }) });
    if is_noted {
        protect(start, end, prot & !PROT_WRITE);
        crate::dispatch::slow_down_writing();
    }
    is_noted
}

/// Maps a region of the commit again, which was one of these. False: its file cannot be had.
pub fn map(e: &mut Engine, m: &Mapped<'_>) -> bool {
    let r = &m.region;
    // What the program has open, and what it maps, was one open file. Where everything had died it was opened anew; what the engine holds
    // may be left of one who was killed while doing that.
    let mut found = None;
    for_each_open(|fd| {
        let has_name = || proc::link(fd, &mut [0; PATH_MAX]) == m.path;
        let is_it = || has_name() && is_inode(fd, r.inode) && own_files::is_usable(fd, &[]);
        if found.is_none() && !e.fds.is_engine(fd) && is_it() {
            found = Some(fd);
        }
    });
    if let Some(fd) = found.or_else(|| e.held.find(e.fds.own, r.inode)) {
        return map_as(e, r, fd);
    }
    let mut path = [0u8; PATH_MAX];
    let Some(room) = path.get_mut(..m.path.len()).filter(|_| m.path.len() < PATH_MAX) else { return false };
    room.copy_from_slice(m.path);
    Passing::open(path.as_ptr(), O_RDWR).is_ok_and(|file| map_as(e, r, file.fd as i32))
}

fn map_as(e: &mut Engine, r: &Region, fd: i32) -> bool {
    // SAFETY: the range was unmapped.
    let got = unsafe { syscall!(nr::MMAP, r.start, r.end - r.start, r.prot, MAP_SHARED_FIXED, fd, r.offset) };
    if got as u64 != r.start || !is_inode(fd, r.inode) {
        return false;
    }
    let mut is_noted = enter(e, fd, (r.start, r.end), r.offset, r.prot);
    // A predecessor that is about to end may have it open otherwise: one that was killed while it opened everything anew.
    for _ in 0..NAPS {
        if is_noted || undo::is_open_once(fd) {
            break;
        }
        futex_wait(&AtomicU32::new(0), 0, Some(NAP_NS));
        is_noted = enter(e, fd, (r.start, r.end), r.offset, r.prot);
    }
    if !is_noted && r.prot & PROT_WRITE != 0 {
        degrade(Degradation::SharedMapping);
    }
    true
}

fn is_inode(fd: i32, inode: u64) -> bool {
    undo::look_at(fd).is_ok_and(|look| look.is_regular() && look.identity.inode() == inode)
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
