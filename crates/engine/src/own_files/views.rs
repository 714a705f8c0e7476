//! Where these files are mapped: ranges of addresses in ascending order, each with the key of its first page.

use crate::sorted::{Ranged, Sorted};

/// A range.
#[derive(Clone, Copy)]
struct View {
    start: u64,
    end: u64,
    key: u64,
}

impl Ranged for View {
    fn start(&self) -> u64 {
        self.start
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn part(&self, start: u64, end: u64) -> View {
        View { start, end, key: self.key + (start - self.start) }
    }
}

/// More than that and the files are not kept.
const MOST: usize = 4096;

static mut VIEWS: [View; MOST] = [View { start: 0, end: 0, key: 0 }; MOST];
static mut COUNT: usize = 0;

fn views() -> Sorted<'static, View> {
    let (views, count) = (&raw mut VIEWS, &raw mut COUNT);
    // SAFETY: there is one user at a time, who has the engine's lock and keeps it no longer than to the next call of this module.
    unsafe { Sorted::new(&mut *views, &mut *count) }
}

/// Notes what is mapped where nothing was. False: there is no room.
pub fn put(start: u64, end: u64, key: u64) -> bool {
    let mut views = views();
    let at = views.index(start);
    let before = at.checked_sub(1).map(|before| views.all()[before]);
    match before.filter(|before| before.end == start && before.key + (start - before.start) == key) {
        Some(before) => views.splice(at - 1, at, &[View { end, ..before }]),
        None => views.splice(at, at, &[View { start, end, key }]),
    }
}

/// Forgets what is mapped in a range. False: there is no room for what is left of it.
pub fn remove(start: u64, end: u64) -> bool {
    views().remove(start, end)
}

/// Forgets one that has its key in a range, and says where it was.
pub fn take(low: u64, high: u64) -> Option<(u64, u64)> {
    let mut views = views();
    let at = views.all().iter().position(|view| (low..high).contains(&view.key))?;
    let view = views.all()[at];
    views.splice(at, at + 1, &[]);
    Some((view.start, view.end))
}

/// Forgets all.
pub fn forget() {
    views().remove(0, u64::MAX);
}

/// Calls `f` with each part of `start..end`, in order, and its key if it is mapped from such a file.
pub fn each_part(start: u64, end: u64, mut f: impl FnMut(u64, u64, Option<u64>)) {
    let mut at = start;
    while at < end {
        let views = views();
        match views.all().get(views.index(at)).copied() {
            Some(view) if view.start <= at => {
                let until = end.min(view.end);
                f(at, until, Some(view.key + (at - view.start)));
                at = until;
            }
            next => {
                let until = next.map_or(end, |view| end.min(view.start));
                f(at, until, None);
                at = until;
            }
        }
    }
}

/// Calls `f` with each part of `start..end` that is mapped from such a file, and its key.
pub fn each(start: u64, end: u64, mut f: impl FnMut(u64, u64, u64)) {
    each_part(start, end, |start, end, key| {
        if let Some(key) = key {
            f(start, end, key);
        }
    });
}

/// The key of the page at `page`, if it is one of such a file.
pub fn key_of(page: u64) -> Option<u64> {
    let views = views();
    let view = views.all().get(views.index(page))?;
    (view.start <= page).then(|| view.key + (page - view.start))
}

/// What the store has the page by: its key, or its address.
#[inline]
pub fn key(page: u64) -> u64 {
    if views().all().is_empty() {
        return page;
    }
    key_of(page).unwrap_or(page)
}
