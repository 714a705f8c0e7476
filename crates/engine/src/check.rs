//! The tracker's test: right after a commit all of memory is compared with the store.
//!
//! Three promises: a page that can be written and has content of the program's own, other than zeroes, is in the store; one that is neither
//! armed nor hot is one that the next search will look at; and the store holds what memory holds. Pages that are swapped out, and shared ones, are left
//! out of the first two, and so are those to which the kernel writes for threads that wait: they are looked at once these go on. Where writes are
//! found by faults only the third is looked at: the first two are what the tracker itself goes by.

use crate::control::{control, event};
use crate::own_files;
use crate::regions;
use crate::state::Engine;
use crate::tracker::{self, Tracker, WHERE};
use crate::user;
use crate::waiting;
use core::sync::atomic::Ordering::*;
use outlast_image::event::event_kind;
use outlast_image::layout::STORE_BASE;
use outlast_image::region::{backing, Region};

/// Contents are compared after so many checks: the store must be folded for it.
const CONTENTS_EVERY: u64 = 16;

/// What was found, as the engine's error tells.
const UNSAVED: u32 = 1;
const UNARMED: u32 = 2;
const DIFFERENT: u32 = 3;

/// Checks the commit that was just published. False: it missed something, and the log says where.
pub fn nothing_was_missed(e: &mut Engine) -> bool {
    let is_disturbed = match &mut e.tracker {
        Tracker::Async(tracker) => tracker.is_disturbed(),
        Tracker::Signal(_) => false,
    };
    if is_disturbed {
        control().checks_put_off.fetch_add(1, Relaxed);
        return true;
    }
    let n = control().checks.fetch_add(1, Relaxed);
    let missed = unsaved_or_unarmed(e).or_else(|| if n % CONTENTS_EVERY == 0 { different(e) } else { None });
    if let Some((what, page)) = missed {
        event(event_kind::ENGINE_ERROR, 0, 0, what as u64, page);
    }
    missed.is_none()
}

fn unsaved_or_unarmed(e: &mut Engine) -> Option<(u32, u64)> {
    let mut found = None;
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        let foreign = matches!(m.region.backing, backing::KERNEL | backing::SHARED_FILE | backing::CONTEXT);
        if found.is_none() && !foreign && m.region.prot & 2 != 0 {
            found = in_region(e, &m.region);
        }
    });
    found
}

fn in_region(e: &mut Engine, region: &Region) -> Option<(u32, u64)> {
    let Tracker::Async(tracker) = &mut e.tracker else { return None };
    let Some(store) = &e.store else { return None };
    let mut walk = tracker.own(region.start, region.end);
    while let Some(runs) = walk.next() {
        for run in runs.iter().filter(|run| run.is_present()) {
            for page in (run.start..run.end).step_by(4096) {
                let saved =
                    store.contains(own_files::key(page)) || region.backing != backing::PRIVATE_FILE && is_zero(page);
                let stands = saved && (!run.is_written() || e.hot.contains(page));
                if !stands && !tracker.is_suspected(page) && !waiting::is_written_to(page) {
                    return Some((if saved { UNARMED } else { UNSAVED }, page));
                }
            }
        }
    }
    None
}

fn different(e: &mut Engine) -> Option<(u32, u64)> {
    if e.store().fold().is_err() {
        return None;
    }
    let mut found = None;
    let (Some(store), tracker) = (&e.store, &mut e.tracker) else { return None };
    let mut is_left_out = |page| match tracker {
        Tracker::Async(tracker) => tracker.is_suspected(page) || waiting::is_written_to(page),
        Tracker::Signal(_) => tracker::is_kept_open(page),
    };
    for (low, high) in WHERE {
        store.runs(low, high, &mut |address, offset, len| {
            for page in (address..address + len).step_by(4096) {
                let frame = STORE_BASE + offset + (page - address);
                if !e.hot.contains(page) && !equal(page, frame) && !is_left_out(page) {
                    found = found.or(Some((DIFFERENT, page)));
                }
            }
        });
    }
    found
}

fn is_zero(page: u64) -> bool {
    let mut content = [0u8; 4096];
    user::read_bytes(page, &mut content) && content.iter().all(|&byte| byte == 0)
}

/// What cannot be read any more is left out.
fn equal(page: u64, frame: u64) -> bool {
    let mut content = [0u8; 4096];
    // SAFETY: a frame of the mapped store.
    let saved = unsafe { &*(frame as *const [u8; 4096]) };
    !user::read_bytes(page, &mut content) || content == *saved
}
