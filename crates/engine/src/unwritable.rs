//! Memory that the program cannot write to is not tracked, and may have been written before: by the dynamic linker, for example.

use crate::regions;
use crate::state::Engine;
use crate::tracker::areas::{area_flag, Area, PROT_READ};
use crate::tracker::Track;
use crate::unreadable;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Is the next commit to save it?
static IS_UNSAVED: AtomicBool = AtomicBool::new(false);

/// The next commit is the first of memory that is there already: nothing of it is armed.
pub fn save_all() {
    IS_UNSAVED.store(true, Relaxed);
}

/// Adds it to such a commit. Returns how many pages it is.
pub fn save(e: &mut Engine) -> usize {
    // Looked at by every commit: an exchange would cost each of them what a locked instruction does.
    if !IS_UNSAVED.load(Relaxed) {
        return 0;
    }
    IS_UNSAVED.store(false, Relaxed);
    let heap = (e.kernel.start_brk, e.kernel.brk);
    let (tracker, Some(store)) = (&mut e.tracker, &mut e.store) else { return 0 };
    let mut count = 0;
    let mut save_area = |area: &Area| {
        tracker.private(area.start, area.end, &mut |start, end| {
            count += ((end - start) / 4096) as usize;
            unreadable::each_readable(start, end, |a, b| {
                // SAFETY: the kernel has reported the pages as the program's own; no other thread runs, and they are readable for
                // the moment.
                store.pages(a, unsafe { core::slice::from_raw_parts(a as *const u8, (b - a) as usize) });
            });
        });
    };
    let is_wanted = |area: &Area| !area.is_tracked() && !area.is(area_flag::FOREIGN);
    let is_readable = |area: &Area| area.prot & PROT_READ != 0;
    regions::for_each(regions::read_maps(), heap, |m| {
        let area = Area::of(&m.region);
        if is_wanted(&area) && is_readable(&area) {
            save_area(&area);
        }
    });
    // To make one readable is to read the map anew.
    let mut reached = 0;
    loop {
        let mut next = None;
        regions::for_each(regions::read_maps(), heap, |m| {
            let area = Area::of(&m.region);
            if next.is_none() && area.start >= reached && is_wanted(&area) && !is_readable(&area) {
                next = Some(area);
            }
        });
        let Some(area) = next else { return count };
        save_area(&area);
        reached = area.end;
    }
}
