//! Ranges where the program protects pages against writing itself (UFFDIO_REGISTER_MODE_WP). There it is told of the writes that the engine
//! would like to be told of, so that the engine compares what is there with a copy, at every commit.

use super::ranges;
use crate::mutant::without;
use crate::scratch;
use crate::state::Engine;
use crate::unreadable;
use crate::user;
use core::sync::atomic::{AtomicBool, Ordering::*};
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Places for copies, found by address.
pub const PLACES: usize = 1 << 16;
/// So many pages are compared at most.
const MOST: usize = PLACES / 8 * 7;

/// Pages have been protected since the last commit.
static PROTECTING: AtomicBool = AtomicBool::new(false);

/// How many places are taken.
struct Copies {
    taken: usize,
}

impl Copies {
    fn new() -> Copies {
        Copies { taken: scratch::compared_pages().iter().filter(|&&page| page != 0).count() }
    }

    /// The place of a page, and whether its copy is there.
    fn place(&mut self, page: u64) -> Option<(usize, bool)> {
        let pages = scratch::compared_pages();
        let mut at = ((page >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % PLACES;
        while pages[at] != page {
            if pages[at] == 0 {
                if self.taken == MOST {
                    return None;
                }
                self.taken += 1;
                pages[at] = page;
                return Some((at, false));
            }
            at = (at + 1) % PLACES;
        }
        Some((at, true))
    }
}

/// The program is about to protect pages, which may have been written since the last commit. What was protected then, and is now, was not.
pub fn protecting() {
    PROTECTING.store(true, Relaxed);
}

/// The same for a request to protect pages, or to have them written again.
pub fn protecting_by(argument: u64) {
    const MODE: u64 = 16;
    const PROTECT: u64 = 1;
    if user::read::<u64>(argument + MODE).is_none_or(|mode| mode & PROTECT != 0) {
        protecting();
    }
}

/// No copy is what the store holds any more.
pub fn forget() {
    protecting();
    scratch::compared_pages().fill(0);
}

/// Puts what differs into the record being built. None: there are more pages than can be compared.
pub fn save(e: &mut Engine) -> Option<usize> {
    if !ranges::has_compared() || without(Mutant::Compared) {
        return Some(0);
    }
    let saved = try_save(e);
    // Some of the copies are of pages that are gone.
    let saved = saved.or_else(|| {
        forget();
        try_save(e)
    });
    PROTECTING.store(false, Relaxed);
    saved
}

fn try_save(e: &mut Engine) -> Option<usize> {
    let (Some(store), tracker) = (&mut e.store, &mut e.tracker) else { return Some(0) };
    let protecting = PROTECTING.load(Relaxed);
    let (mut copies, mut saved) = (Copies::new(), Some(0));
    ranges::each(|range| {
        if range.is_compared() {
            tracker.own_runs(range.start, range.end, &mut |start, end, protected| {
                let is_known = protected && !protecting;
                unreadable::each_readable(start, end, |start, end| {
                    for page in (start..end).step_by(4096) {
                        if is_known && store.contains(page) {
                            continue;
                        }
                        let one = copies.place(page).map(|place| save_page(store, page, place));
                        saved = saved.zip(one).map(|(all, one)| all + one);
                    }
                });
            });
        }
    });
    saved
}

fn save_page(store: &mut Store<'static, MappedRegion>, page: u64, (place, has_copy): (usize, bool)) -> usize {
    let copy = scratch::compared_copy(place);
    // SAFETY: the kernel says that the page is present, and it is readable for the moment; the program is parked, and the copy the
    // engine's own.
    unsafe {
        if has_copy && store.contains(page) {
            return (store.diff(page, page as *const [u8; 4096], copy) != 0) as usize;
        }
        core::ptr::copy_nonoverlapping(page as *const [u8; 4096], copy, 1);
        store.page(page, &*copy);
    }
    1
}
