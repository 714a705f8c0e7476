//! Where these files are mapped: ranges of addresses in ascending order, each with the key of its first page.

/// A range.
#[derive(Clone, Copy)]
struct View {
    start: u64,
    end: u64,
    key: u64,
}

/// More than that and the files are not kept.
const MOST: usize = 4096;

struct Views {
    all: [View; MOST],
    count: usize,
}

static mut VIEWS: Views = Views { all: [View { start: 0, end: 0, key: 0 }; MOST], count: 0 };

/// # Safety
/// One user at a time: whoever has the engine's lock.
unsafe fn views() -> &'static mut Views {
    let this = &raw mut VIEWS;
    &mut *this
}

impl Views {
    fn all(&self) -> &[View] {
        &self.all[..self.count]
    }

    /// Index of the first one that ends behind `address`.
    fn index(&self, address: u64) -> usize {
        self.all().partition_point(|view| view.end <= address)
    }

    /// Replaces those from `first` on, up to `last`, by others. False: there is no room.
    fn splice(&mut self, first: usize, last: usize, new: &[View]) -> bool {
        let count = self.count - (last - first) + new.len();
        if count > MOST {
            return false;
        }
        self.all.copy_within(last..self.count, first + new.len());
        self.all[first..first + new.len()].copy_from_slice(new);
        self.count = count;
        true
    }
}

/// Notes what is mapped where nothing was. False: there is no room.
pub fn put(start: u64, end: u64, key: u64) -> bool {
    // SAFETY: the caller has the engine's lock, here and below.
    let views = unsafe { views() };
    let at = views.index(start);
    if let Some(before) = at.checked_sub(1).map(|before| &mut views.all[before]) {
        if before.end == start && before.key + (before.end - before.start) == key {
            before.end = end;
            return true;
        }
    }
    views.splice(at, at, &[View { start, end, key }])
}

/// Forgets what is mapped in a range. False: there is no room for what is left of it.
pub fn remove(start: u64, end: u64) -> bool {
    let views = unsafe { views() };
    let first = views.index(start);
    let last = views.all().partition_point(|view| view.start < end);
    if first >= last {
        return true;
    }
    let (head, tail) = (views.all[first], views.all[last - 1]);
    let head = View { end: start.max(head.start), ..head };
    let tail = View { start: end.min(tail.end), key: tail.key + (end.min(tail.end) - tail.start), ..tail };
    let mut rest = [head; 2];
    let mut count = 0;
    for part in [head, tail] {
        if part.start < part.end {
            rest[count] = part;
            count += 1;
        }
    }
    views.splice(first, last, &rest[..count])
}

/// Forgets one that has its key in a range, and says where it was.
pub fn take(low: u64, high: u64) -> Option<(u64, u64)> {
    let views = unsafe { views() };
    let at = views.all().iter().position(|view| (low..high).contains(&view.key))?;
    let view = views.all[at];
    views.splice(at, at + 1, &[]);
    Some((view.start, view.end))
}

/// Forgets all.
pub fn forget() {
    unsafe { views() }.count = 0;
}

/// Calls `f` with each part of `start..end`, in order, and its key if it is mapped from such a file.
pub fn each_part(start: u64, end: u64, mut f: impl FnMut(u64, u64, Option<u64>)) {
    let mut at = start;
    while at < end {
        let views = unsafe { views() };
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
    let views = unsafe { views() };
    let view = views.all().get(views.index(page))?;
    (view.start <= page).then(|| view.key + (page - view.start))
}

/// What the store has the page by: its key, or its address.
#[inline]
pub fn key(page: u64) -> u64 {
    if unsafe { views() }.count == 0 {
        return page;
    }
    key_of(page).unwrap_or(page)
}
