//! PROT_WRITE is taken away, by as few calls as possible.

use super::state::State;
use crate::state::engine;
use crate::sys::{nr, syscall};
use crate::tracker::areas::{Area, PROT_READ, PROT_WRITE};
use crate::tracker::open_pages::{self, Which};
use crate::user;

const PAGE: u64 = 4096;
/// Gaps up to this length are searched for writable pages, so that two arms become one call.
const JOIN_GAP: u64 = 64 << 20;
/// Bytes of a huge page.
const HUGE: u64 = 2 << 20;

/// The protection of an armed page that the program wants to have `prot`.
pub fn armed(prot: u32) -> u32 {
    prot & !PROT_WRITE | PROT_READ
}

/// Gives the kernel's protection of program memory another value. False: it refused.
pub fn mprotect(start: u64, end: u64, prot: u32) -> bool {
    // SAFETY: changes no content. What loses PROT_WRITE gets it back at the first fault.
    unsafe { syscall!(nr::MPROTECT, start, end - start, prot) == 0 }
}

/// Writes a word of `start..end` as it is: the kernel then has an `anon_vma` for the mapping. Not in the middle of
/// what may become a huge page, if there is a choice.
pub fn root(start: u64, end: u64) {
    let (mut first, mut last) = (None, None);
    // SAFETY: only looks what is guarded.
    unsafe { engine() }.advice.each_unguarded(start, end, |from, to| {
        first = first.or(Some(from));
        last = Some(to - PAGE);
    });
    let page = if end % HUGE == 0 && start % HUGE != 0 { first } else { last };
    if let Some((page, word)) = page.and_then(|page| Some((page, user::read::<u32>(page)?))) {
        // At once: it may be another thread's at the same time, or the kernel's.
        user::swap(page, word, word);
    }
}

impl State {
    /// Arms `start..end`, within an area, now or together with what comes next.
    pub fn arm(&mut self, area: &Area, start: u64, end: u64) {
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

    /// Arms what was put off.
    pub fn flush(&mut self) {
        let (start, end, prot) = core::mem::take(&mut self.queue);
        if start < end && !mprotect(start, end, prot) {
            // Sealed, of huge pages, or in too many pieces: reported again at every commit.
            open_pages::note(start, end, true, true);
        }
    }
}
