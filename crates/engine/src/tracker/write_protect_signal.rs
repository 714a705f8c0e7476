//! Write protection and SIGSEGV: works on any kernel, and where userfaultfd is forbidden.
//!
//! Arming takes PROT_WRITE away; the first write is a SIGSEGV, whose handler notes the page and gives PROT_WRITE back.
//! `areas` knows what the program itself wanted, so that its own faults stay its own. Every isolated writable page costs
//! the kernel two more mappings, of which it allows 65,530: arming joins them again, and the more pieces there are, the
//! larger the next ones become. Writes of the kernel are not seen (they fail with EFAULT): see `kernel_writes`.
//!
//! The state lies in working memory and not in [`WriteProtectSignal`]: the handler changes it while the engine holds
//! its own structures.

use super::areas::{self, area_flag, Area, PROT_READ, PROT_WRITE};
use super::open_pages::{self, Which};
use super::{pagemap, Content, Track};
use crate::dispatch::{self, Call};
use crate::scratch;
use crate::state::engine;
use crate::sys::{err, nr, syscall};
use crate::user;

const PAGE: u64 = 4096;
/// A fresh mapping of up to this many bytes stays writable until the next commit: it is about to be filled.
const FRESH_OPEN: u64 = 1 << 20;
/// One that only became writable: its pages may all be in the store, and what is open is saved.
const CHANGED_OPEN: u64 = 64 << 10;
/// Pages opened at once when the program writes one after the other: where the store has them already, and where not.
const STRIDE_KNOWN: u64 = 16;
const STRIDE_NEW: u64 = 512;
/// Bytes by which a stack is extended when its lowest page is about to become writable.
const STACK_STEP: u64 = 32 * PAGE;
/// Gaps up to this length are searched for writable pages, so that two arms become one call.
const JOIN_GAP: u64 = 64 << 20;
/// Bytes of a huge page.
const HUGE: u64 = 2 << 20;
/// PROT_GROWSDOWN and PROT_GROWSUP.
const PROT_GROWS: u64 = 0x0300_0000;
/// So many steps of runs are of single pages; every further step doubles the pages of the next.
const SINGLE_STEPS: u64 = 8;
/// Runs noted as opened for one system call.
pub const OPENED: usize = 8;

/// See the module.
pub struct WriteProtectSignal;

#[repr(C)]
struct State {
    attached: bool,
    collecting: bool,
    /// The tables are full: pages may be written unnoticed.
    lost: bool,
    pagemap: i32,
    /// Isolated runs opened since the last commit, and how many of them make a step.
    runs: u64,
    step: u64,
    /// The last run opened, and the pages of the next one if it follows.
    last: (u64, u64),
    stride: u64,
    /// What will be armed by one call: start, end, protection; then the area it lies in.
    queue: (u64, u64, u32),
    queue_area: (u64, u64),
    /// Pages that are never armed.
    pinned: [u64; 2],
    opened: [(u64, u64); OPENED],
    opened_count: usize,
}

const _: () = assert!(core::mem::size_of::<State>() <= 4096 - 64);

fn state() -> &'static mut State {
    // SAFETY: lies in the engine's working memory, zeroed when that was mapped, and all zero is valid; one thread, and
    // no reference is kept over a write to the program's memory, where the handler may come in.
    unsafe { &mut *((scratch::tracker().0 + 64) as *mut State) }
}

fn armed(prot: u32) -> u32 {
    prot & !PROT_WRITE | PROT_READ
}

fn mprotect(start: u64, end: u64, prot: u32) -> bool {
    // SAFETY: changes no content. What loses PROT_WRITE gets it back at the first fault.
    unsafe { syscall!(nr::MPROTECT, start, end - start, prot) == 0 }
}

/// Can `page` be read? Where a stack is extended on demand, looking extends it.
fn is_there(page: u64) -> bool {
    user::read::<u8>(page).is_some()
}

/// Writes a byte of `start..end` as it is: the kernel then has an `anon_vma` for the mapping. Not in the middle of
/// what may become a huge page, if there is a choice.
fn root(start: u64, end: u64) {
    let page = if end % HUGE == 0 && start % HUGE != 0 { start } else { end - PAGE };
    if let Some(byte) = user::read::<u8>(page) {
        user::write(page, &byte);
    }
}

/// Did a write to `address` fault because its page was armed? Then it is noted, and writable now. The kernel said that
/// something is mapped there which cannot be written.
pub fn on_write_fault(address: u64) -> bool {
    let page = address & !(PAGE - 1);
    if !state().attached {
        return false;
    }
    let Some(area) = areas::find(page).copied().or_else(|| adopt(page)) else { return false };
    if !area.is_tracked() {
        return false;
    }
    let (start, end) = reach(&area, page);
    open_run(&area, start, end)
}

/// The area that the kernel has extended down to `page`, if it has.
fn adopt(page: u64) -> Option<Area> {
    let above = areas::all().get(areas::index(page)).filter(|a| a.is(area_flag::GROWSDOWN)).copied()?;
    let vec = scratch::page_vector();
    let mut at = page;
    while at < above.start {
        let len = (above.start - at).min(vec.len() as u64 * PAGE);
        // SAFETY: mincore writes a byte for each page; it fails where one is not mapped.
        if err::is(unsafe { syscall!(nr::MINCORE, at, len, vec.as_mut_ptr()) }) {
            return None;
        }
        at += len;
    }
    let area = areas::find(above.start)?;
    area.start = page;
    Some(*area)
}

/// The run to be opened for a write to `page`: more where the program writes page after page.
fn reach(area: &Area, page: u64) -> (u64, u64) {
    let s = state();
    let doubled = s.runs.saturating_sub(SINGLE_STEPS * s.step) / s.step.max(1);
    let unit = 1 << doubled.min(24);
    let follows = page == s.last.1;
    let precedes = page + PAGE == s.last.0;
    s.stride = if follows || precedes { s.stride * 2 } else { 1 };
    // SAFETY: only looks into the store's index; a handler that interrupts the engine does so outside the store's code.
    let known = unsafe { engine() }.store.as_ref().is_some_and(|store| store.contains(page));
    s.stride = s.stride.min(if known { STRIDE_KNOWN } else { STRIDE_NEW }).max(unit);
    let len = s.stride * PAGE;
    let (start, end) = match (follows, precedes) {
        (true, _) => (page, page.saturating_add(len)),
        (_, true) => ((page + PAGE).saturating_sub(len), page + PAGE),
        _ => (page & !(unit * PAGE - 1), (page & !(unit * PAGE - 1)).saturating_add(len)),
    };
    (start.max(area.start), end.min(area.end))
}

/// Makes `start..end` of `area` writable and notes it.
fn open_run(area: &Area, mut start: u64, mut end: u64) -> bool {
    if area.is(area_flag::GROWSDOWN) && start <= area.start {
        deepen(area.start);
    }
    let whole = !mprotect(start, end, area.prot);
    if whole {
        // Too many mappings: all of it, which joins its pieces.
        (start, end) = (area.start, area.end);
        if !mprotect(start, end, area.prot) {
            return false;
        }
    }
    let was_clean = !whole && !open_pages::any(start, end, Which::Dirty);
    let isolated = !open_pages::is_open(start.wrapping_sub(PAGE)) && !open_pages::is_open(end);
    open_pages::note(start, end, true, true);
    let s = state();
    s.runs += isolated as u64;
    s.last = (start, end);
    if was_clean && s.opened_count < OPENED {
        s.opened[s.opened_count] = (start, end);
        s.opened_count += 1;
    } else {
        s.opened_count = OPENED + 1;
    }
    true
}

/// The lowest page of a stack must not be writable: the kernel would extend it downwards without a fault. So the stack
/// is extended first, if it can be.
fn deepen(lowest: u64) {
    let below = |step| lowest.saturating_sub(step);
    let found =
        [STACK_STEP, PAGE].into_iter().find(|&s| areas::index(below(s)) == areas::index(lowest) && is_there(below(s)));
    if let Some(step) = found {
        adopt(below(step));
    }
}

impl State {
    /// Arms `start..end`, within an area, now or together with what comes next.
    fn arm(&mut self, area: &Area, start: u64, end: u64) {
        let (from, to, prot) = self.queue;
        let near = from < to && self.queue_area == (area.start, area.end) && start >= to && start - to <= JOIN_GAP;
        if self.collecting && near && prot == armed(area.prot) && !open_pages::any(to, start, Which::Open) {
            self.queue.1 = end;
        } else {
            self.flush();
            (self.queue, self.queue_area) = ((start, end, armed(area.prot)), (area.start, area.end));
        }
        open_pages::close(start, end, true);
        if !self.collecting {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (start, end, prot) = core::mem::take(&mut self.queue);
        if start < end && !mprotect(start, end, prot) {
            // Sealed, of huge pages, or in too many pieces: reported again at every commit.
            open_pages::note(start, end, true, true);
        }
    }
}

/// Calls `f` with the parts of `start..end` that no pinned page lies in.
fn around_pinned(start: u64, end: u64, mut f: impl FnMut(u64, u64)) {
    let mut at = start;
    while at < end {
        let pinned = state().pinned.into_iter().filter(|&p| p != 0 && p >= at && p < end).min().unwrap_or(end);
        if at < pinned {
            f(at, pinned);
        }
        at = pinned + PAGE;
    }
}

/// Kernels allow so many mappings.
fn most_mappings() -> u64 {
    let mut text = [0u8; 16];
    // SAFETY: reads into the buffer.
    let n = unsafe {
        let fd = syscall!(nr::OPENAT, -100i64, c"/proc/sys/vm/max_map_count".as_ptr(), 0o2000000, 0);
        if err::is(fd) {
            return 65530;
        }
        let n = syscall!(nr::READ, fd, text.as_mut_ptr(), text.len());
        syscall!(nr::CLOSE, fd);
        n.max(0) as usize
    };
    let digits = text[..n].iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0, |v: u64, c| v.saturating_mul(10) + (c - b'0') as u64)
}

/// Begins to note what was opened.
pub fn watch_opening() {
    state().opened_count = 0;
}

/// The runs opened since, all of which were clean; `None` if there were others or too many.
pub fn opened() -> Option<&'static [(u64, u64)]> {
    let s = state();
    s.opened.get(..s.opened_count)
}

impl WriteProtectSignal {
    /// Are pages being written unnoticed, because a table is full?
    pub fn is_lost(&self) -> bool {
        state().lost || open_pages::has_overflown()
    }

    fn remember(&self, fits: bool) {
        state().lost |= !fits;
    }

    /// After a mprotect that failed part way: the program's protections as the kernel has them, area by area.
    fn protect_stepwise(&mut self, start: u64, end: u64, call: &Call) {
        let mut at = start;
        areas::each(start, end, |part| {
            let mut piece = *call;
            (piece.args[0], piece.args[1]) = (part.start, part.end - part.start);
            if part.start == at && dispatch::native(&piece) == 0 {
                at = part.end;
            }
        });
        if at > start {
            self.protected(start, at, call.args[2] as u32);
        }
    }

    /// The kernel has given `start..end` the program's protection `prot`.
    fn protected(&mut self, start: u64, end: u64, prot: u32) {
        self.remember(areas::protect(start, end, prot));
        open_pages::close(start, end, false);
        areas::each(start, end, |part| {
            if part.is_tracked() {
                open_pages::note(part.start, part.end, true, true);
            }
        });
    }
}

impl Track for WriteProtectSignal {
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64> {
        // SAFETY: a descriptor is created and moved to a number that is the engine's.
        unsafe {
            let fd = syscall!(nr::OPENAT, -100i64, c"/proc/self/pagemap".as_ptr(), 0o2000000, 0);
            if err::is(fd) {
                return Err(fd);
            }
            let r = syscall!(nr::DUP3, fd, fds[1], 0o2000000);
            syscall!(nr::CLOSE, fd);
            if err::is(r) {
                return Err(r);
            }
        }
        let s = state();
        s.step = most_mappings() / 64;
        s.pagemap = fds[1];
        s.attached = true;
        dispatch::slow_down_writers();
        Ok(())
    }

    fn renumber(&mut self, fds: [i32; 2]) {
        state().pagemap = fds[1];
    }

    fn cover(&mut self, area: &Area, content: Content) {
        self.uncover(area.start, area.end);
        let mut area = *area;
        if area.is_tracked() && content == Content::Saved && !area.is(area_flag::SHARED) {
            root(area.start, area.end);
            area.flags |= area_flag::ROOTED;
        }
        self.remember(areas::insert(area));
        if !area.is_tracked() {
            return;
        }
        let large = area.end - area.start > FRESH_OPEN || area.is(area_flag::GROWSDOWN);
        match content {
            Content::Fresh if large => self.arm(area.start, area.end),
            Content::Fresh | Content::Unsaved => open_pages::note(area.start, area.end, true, true),
            Content::Saved => {}
        }
    }

    #[inline]
    fn may_have_changed(&mut self) -> bool {
        // SAFETY: only looks into the hot set.
        let hot = unsafe { &engine().hot };
        !open_pages::is_clean() || state().pinned.iter().any(|&p| p != 0 && !hot.contains(p))
    }

    fn collect(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        for page in state().pinned {
            if page != 0 {
                open_pages::note(page, page + PAGE, true, true);
            }
        }
        state().collecting = true;
        open_pages::take(start, end, f);
        state().flush();
        let s = state();
        s.collecting = false;
        (s.runs, s.stride, s.last) = (0, 1, (0, 0));
        open_pages::tidy();
    }

    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        pagemap::private(state().pagemap, start, end, f);
    }

    fn arm(&mut self, start: u64, end: u64) {
        areas::each(start, end, |part| {
            if !part.is_tracked() {
                return;
            }
            if !part.is(area_flag::ROOTED | area_flag::SHARED) {
                root(part.start, part.end);
                if let Some(area) = areas::find(part.start) {
                    area.flags |= area_flag::ROOTED;
                }
            }
            let area = areas::find(part.start).map_or(part, |a| *a);
            around_pinned(part.start, part.end, |from, to| state().arm(&area, from, to));
        });
    }

    fn uncover(&mut self, start: u64, end: u64) {
        self.remember(areas::remove(start, end));
        open_pages::close(start, end, true);
        for page in &mut state().pinned {
            if (start..end).contains(page) {
                *page = 0;
            }
        }
    }

    fn written(&mut self, page: u64) {
        open_pages::note(page, page + PAGE, false, true);
    }

    fn protect(&mut self, call: &Call) -> i64 {
        let [addr, len, prot, ..] = call.args;
        let end = addr.saturating_add(len).saturating_add(PAGE - 1) & !(PAGE - 1);
        if prot & PROT_GROWS != 0 {
            // The kernel looks for the end of the mapping: it must be in one piece.
            self.settle();
            let r = dispatch::native(call);
            let from = areas::find(addr).filter(|a| a.is(area_flag::GROWSDOWN)).map_or(addr, |a| a.start);
            if r == 0 {
                self.protected(from, end, (prot & !PROT_GROWS) as u32);
            }
            return r;
        }
        let lazily = prot as u32 & PROT_WRITE != 0 && len > CHANGED_OPEN && areas::is_plain(addr, end);
        let mut made = *call;
        if lazily {
            made.args[2] = armed(prot as u32) as u64;
        }
        let r = dispatch::native(&made);
        if r != 0 {
            self.protect_stepwise(addr, end, call);
        } else if lazily {
            self.remember(areas::protect(addr, end, prot as u32));
            open_pages::close(addr, end, false);
        } else {
            self.protected(addr, end, prot as u32);
        }
        r
    }

    fn before_move(&mut self, old: (u64, u64), whole: bool) {
        if whole {
            return self.open(old.0, old.1);
        }
        areas::each(old.0, old.1, |part| {
            let cut = open_pages::any(part.start, part.end, Which::Open);
            if part.is_tracked() && cut && mprotect(part.start, part.end, armed(part.prot)) {
                open_pages::close(part.start, part.end, false);
            }
        });
    }

    fn moved(&mut self, old: (u64, u64), new: (u64, u64), keep_old: bool) {
        let Some(was) = areas::find(old.0).copied() else { return };
        let grown = (old.1 - old.0).min(new.1 - new.0);
        if new.0 != old.0 {
            if !keep_old {
                self.uncover(old.0, old.1);
            }
            self.uncover(new.0, new.1);
            self.remember(areas::insert(Area { start: new.0, end: new.1, ..was }));
            self.open(new.0, new.1);
        } else if new.1 < old.1 {
            self.uncover(new.1, old.1);
        } else if old.1 < new.1 {
            let tail = Area { start: new.0 + grown, end: new.1, ..was };
            self.uncover(tail.start, tail.end);
            self.remember(areas::insert(tail));
            // What the kernel appended has the protection of what was there.
            if tail.is_tracked() && open_pages::is_open(tail.start - PAGE) {
                open_pages::note(tail.start, tail.end, true, true);
            }
        }
    }

    fn open(&mut self, start: u64, end: u64) {
        if !state().attached {
            return;
        }
        let (start, end) = (start & !(PAGE - 1), end.saturating_add(PAGE - 1) & !(PAGE - 1));
        // The kernel would have extended a stack down to where it writes.
        let above = areas::all().get(areas::index(start));
        if above.is_some_and(|a| a.start > start && a.is(area_flag::GROWSDOWN)) && is_there(start) {
            adopt(start);
        }
        areas::each(start, end, |part| {
            if !part.is_tracked() {
                return;
            }
            let mut at = open_pages::next(part.start, part.end, Which::Closed);
            while at < part.end {
                let stop = open_pages::next(at, part.end, Which::Open);
                let Some(area) = areas::find(at).copied() else { return };
                if !open_run(&area, at, stop) {
                    return;
                }
                at = open_pages::next(stop, part.end, Which::Closed);
            }
        });
    }

    fn pin(&mut self, page: u64) {
        self.open(page, page + PAGE);
        let s = state();
        if let Some(free) = s.pinned.iter_mut().find(|p| **p == 0 || **p == page) {
            *free = page;
        }
    }

    fn settle(&mut self) -> bool {
        let mut settled = false;
        areas::each(0, u64::MAX, |area| {
            let cut = area.is_tracked() && open_pages::any(area.start, area.end, Which::Open);
            if cut && mprotect(area.start, area.end, armed(area.prot)) {
                open_pages::close(area.start, area.end, false);
                settled = true;
            }
        });
        settled
    }

    fn written_behind(&mut self) {}

    fn release(&mut self) {
        if !core::mem::take(&mut state().attached) {
            return;
        }
        areas::each(0, u64::MAX, |area| {
            if area.is_tracked() {
                mprotect(area.start, area.end, area.prot);
            }
        });
    }
}
