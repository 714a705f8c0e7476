//! The first write to an armed page: more than that page is made writable where the program writes one after the other, and
//! where the pieces are too many.

use super::arming::mprotect;
use super::state::{state, OPENED};
use crate::state::engine;
use crate::sys::{err, nr, syscall};
use crate::tracker::areas::{self, area_flag, Area};
use crate::tracker::open_pages::{self, Which};
use crate::{scratch, user};

const PAGE: u64 = 4096;
/// Pages opened at once when the program writes one after the other: where the store has them already, and where not.
const STRIDE_KNOWN: u64 = 16;
const STRIDE_NEW: u64 = 512;
/// Bytes by which a stack is extended when its lowest page is about to become writable.
const STACK_STEP: u64 = 32 * PAGE;
/// So many steps of runs are of single pages; every further step doubles the pages of the next.
const SINGLE_STEPS: u64 = 8;

/// Are pages armed, or may they be?
pub fn is_attached() -> bool {
    state().attached
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
pub fn adopt(page: u64) -> Option<Area> {
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
pub fn open_run(area: &Area, mut start: u64, mut end: u64) -> bool {
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

/// Can `page` be read? Where a stack is extended on demand, looking extends it.
pub fn is_there(page: u64) -> bool {
    user::read::<u8>(page).is_some()
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

/// Kernels allow so many mappings.
pub fn most_mappings() -> u64 {
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
