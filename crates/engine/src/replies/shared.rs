//! Connections that others have as well, as a child does that was forked: what they send there counts, too. Part of a commit.

use crate::scratch;
use crate::state::{object, Engine};

const MOST: usize = 512;

pub struct Shared {
    sources: [u64; MOST],
    /// More than `MOST`: all are.
    count: usize,
    /// Not as in the store.
    dirty: bool,
}

impl Shared {
    pub const fn new() -> Shared {
        Shared { sources: [0; MOST], count: 0, dirty: false }
    }

    pub fn has(&self, source: u64) -> bool {
        self.count > MOST || self.sources[..self.count].contains(&source)
    }

    fn add(&mut self, source: u64) {
        if self.has(source) {
            return;
        }
        if let Some(place) = self.sources.get_mut(self.count) {
            *place = source;
        }
        (self.count, self.dirty) = (self.count + 1, true);
    }
}

/// Somebody else has, or gets, what is open as `fd`.
pub fn share(e: &mut Engine, fd: i32) {
    let Some(source) = e.fds.source(fd) else { return };
    if e.replies.shared.count == MOST {
        keep_open_ones(e);
    }
    e.replies.shared.add(source);
}

fn keep_open_ones(e: &mut Engine) {
    let before = core::mem::replace(&mut e.replies.shared, Shared { dirty: true, ..Shared::new() });
    for fd in 0..e.fds.end() {
        let source = if e.fds.is_open(fd) { e.fds.source(fd) } else { None };
        if let Some(source) = source.filter(|source| before.has(*source)) {
            e.replies.shared.add(source);
        }
    }
}

/// Puts them into the commit that is being made.
pub fn save(e: &mut Engine) {
    let (shared, Some(store)) = (&mut e.replies.shared, &mut e.store) else { return };
    if core::mem::take(&mut shared.dirty) {
        // One too many is as good as any number.
        let known = &shared.sources[..shared.count.min(MOST)];
        store.put2(object::SHARED_CONNECTIONS, 0, &(shared.count as u64).to_le_bytes(), bytemuck::cast_slice(known));
    }
}

/// Reads them back.
pub fn load(e: &mut Engine) {
    let buf = scratch::object_buffer();
    let n = e.store().object(object::SHARED_CONNECTIONS, 0, buf).unwrap_or(0).min(buf.len());
    e.replies.shared = Shared::new();
    let mut words = buf[..n].chunks_exact(8).map(bytemuck::pod_read_unaligned::<u64>);
    let count = words.next().unwrap_or(0) as usize;
    words.take(MOST).for_each(|source| e.replies.shared.add(source));
    (e.replies.shared.count, e.replies.shared.dirty) = (count, false);
}
