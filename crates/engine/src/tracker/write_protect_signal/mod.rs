//! Write protection and SIGSEGV: works on any kernel, and where userfaultfd is forbidden.
//!
//! Arming takes PROT_WRITE away; the first write is a SIGSEGV, whose handler notes the page and gives PROT_WRITE back.
//! `areas` knows what the program itself wanted, so that its own faults stay its own. Every isolated writable page costs
//! the kernel two more mappings, of which it allows 65,530: arming joins them again, and the more pieces there are, the
//! larger the next ones become. Writes of the kernel are not seen (they fail with EFAULT): see `kernel_writes`.

mod arming;
pub mod kept_open;
mod opening;
mod state;

pub use opening::{is_attached, on_write_fault, opened, watch_opening};

use super::areas::{self, area_flag, Area, PROT_WRITE};
use super::open_pages::{self, Which};
use super::{pagemap, Content, Pages, Track, WHERE};
use crate::dispatch::{self, Call};
use crate::proc;
use crate::state::engine;
use crate::sys::{err, nr, syscall};
use arming::{armed, mprotect, root};
use opening::{adopt, is_there, most_mappings, open_run};
use state::state;

const PAGE: u64 = 4096;
/// A fresh mapping of up to this many bytes stays writable until the next commit: it is about to be filled.
const FRESH_OPEN: u64 = 1 << 20;
/// One that only became writable: its pages may all be in the store, and what is open is saved.
const CHANGED_OPEN: u64 = 64 << 10;
/// PROT_GROWSDOWN and PROT_GROWSUP.
const PROT_GROWS: u64 = 0x0300_0000;

/// See the module.
pub struct WriteProtectSignal;

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
            let (dir, path) = proc::place(c"/proc/self/pagemap".as_ptr().cast());
            let fd = syscall!(nr::OPENAT, dir, path, 0o2000000, 0);
            if err::is(fd) {
                return Err(fd);
            }
            let r = syscall!(nr::DUP3, fd, fds[1], 0o2000000);
            syscall!(nr::CLOSE, fd);
            if err::is(r) {
                return Err(r);
            }
        }
        kept_open::clear();
        let s = state();
        s.step = most_mappings() / 64;
        s.pagemap = fds[1];
        s.attached = true;
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
        !open_pages::is_clean() || kept_open::any_but(|page| hot.contains(page))
    }

    fn changed(&mut self, pages: &mut dyn Pages) {
        kept_open::note_written();
        state().collecting = true;
        for (low, high) in WHERE {
            open_pages::take(low, high, &mut |start, end| pages.save(self, start, end));
        }
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
            kept_open::around(part.start, part.end, |from, to| state().arm(&area, from, to));
        });
    }

    fn uncover(&mut self, start: u64, end: u64) {
        self.remember(areas::remove(start, end));
        open_pages::close(start, end, true);
        kept_open::remove(start, end);
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
        let lazily = lazily && !kept_open::any_in(addr, end);
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
            if !was.is_tracked() && !was.is(area_flag::FOREIGN) {
                // It can be written no more, and was before: nothing is to be opened, but it is to be saved.
                open_pages::note(new.0, new.0 + grown, false, true);
            }
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

    fn disarm(&mut self, start: u64, end: u64) {
        self.open(start, end);
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
        kept_open::add(page, page + PAGE);
    }

    fn settle(&mut self) -> bool {
        let mut settled = false;
        areas::each(0, u64::MAX, |area| {
            if !area.is_tracked() {
                return;
            }
            kept_open::around(area.start, area.end, |from, to| {
                if open_pages::any(from, to, Which::Open) && mprotect(from, to, armed(area.prot)) {
                    open_pages::close(from, to, false);
                    settled = true;
                }
            });
        });
        settled
    }

    fn commit_done(&mut self, _unseen: u64) {}

    fn written_by_kernel(&mut self, _start: u64, _end: u64) {}

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
