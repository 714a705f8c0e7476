//! Which pages are writable at the moment, and which of them are to be reported.
//!
//! Two bitmaps for each 2 MiB of address space that has such pages, found by hashing: a fault notes its page in constant
//! time, and a commit walks what was noted. A page that is open and not dirty belongs to the hot set.

use super::areas;
use super::write_protect_signal::kept_open;
use crate::scratch;

/// Bytes of address space with bitmaps of their own.
const SPAN: u64 = 2 << 20;
const WORDS: usize = 8;
const BLOCKS: usize = 1 << 16;
/// Blocks that outlive a commit at most: those of hot pages.
const SPARE: usize = 1024;
static EMPTY: Block = Block { key: 0, listed: 0, open: [0; WORDS], dirty: [0; WORDS] };

/// The bitmaps of one span; all zero: no block.
#[repr(C)]
#[derive(Clone, Copy)]
struct Block {
    /// Address of the span, plus one.
    key: u64,
    /// Not 0: it is in the list of those with dirty pages.
    listed: u64,
    open: [u64; WORDS],
    dirty: [u64; WORDS],
}

/// The table.
#[repr(C)]
struct Table {
    blocks: [Block; BLOCKS],
    /// Numbers of the blocks in use.
    used: [u32; BLOCKS],
    used_count: usize,
    /// Numbers of the blocks with dirty pages; the second half is room for those being walked.
    listed: [u32; 2 * BLOCKS],
    listed_count: usize,
    spare: [Block; SPARE],
    /// A block could not be had: something is not noted.
    overflow: bool,
}

const _: () = assert!(areas::LEN + core::mem::size_of::<Table>() as u64 + kept_open::LEN <= scratch::TRACKER_LEN);

fn table() -> &'static mut Table {
    // SAFETY: lies in the engine's working memory, zeroed when that was mapped; one thread. A handler that interrupts
    // the engine changes it only where the engine writes to the program's memory, and no reference is kept over that.
    unsafe { &mut *((scratch::tracker().0 + areas::LEN) as *mut Table) }
}

fn slot(span: u64) -> usize {
    ((span >> 21).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % BLOCKS
}

impl Table {
    fn find(&self, span: u64) -> Option<usize> {
        let mut i = slot(span);
        loop {
            match self.blocks[i].key {
                0 => return None,
                k if k == span + 1 => return Some(i),
                _ => i = (i + 1) % BLOCKS,
            }
        }
    }

    fn make(&mut self, span: u64) -> Option<usize> {
        if let Some(i) = self.find(span) {
            return Some(i);
        }
        if self.used_count >= BLOCKS / 4 * 3 {
            self.overflow = true;
            return None;
        }
        let mut i = slot(span);
        while self.blocks[i].key != 0 {
            i = (i + 1) % BLOCKS;
        }
        self.blocks[i].key = span + 1;
        self.used[self.used_count] = i as u32;
        self.used_count += 1;
        Some(i)
    }

    /// As the function of that name, within one span.
    fn next(&self, span: u64, start: u64, end: u64, which: Which) -> u64 {
        let block = self.find(span).map_or(&EMPTY, |i| &self.blocks[i]);
        for w in 0..WORDS {
            let bits = match which {
                Which::Open => block.open[w],
                Which::Closed => !block.open[w],
                Which::Dirty => block.dirty[w],
            };
            let found = bits & mask(span, w, start, end);
            if found != 0 {
                return span + (w as u64 * 64 + found.trailing_zeros() as u64) * 4096;
            }
        }
        end
    }

    fn list(&mut self, i: usize) {
        if self.blocks[i].listed == 0 {
            self.blocks[i].listed = 1;
            self.listed[self.listed_count] = i as u32;
            self.listed_count += 1;
        }
    }
}

/// The bits in word `w` of the span that `start..end` covers.
fn mask(span: u64, w: usize, start: u64, end: u64) -> u64 {
    let low = span + w as u64 * 64 * 4096;
    let from = (start.saturating_sub(low) >> 12).min(64);
    let to = (end.saturating_sub(low) >> 12).min(64);
    let below = |n: u64| if n == 64 { !0 } else { (1 << n) - 1 };
    below(to) & !below(from)
}

fn spans(start: u64, end: u64) -> impl Iterator<Item = u64> {
    (start & !(SPAN - 1)..end).step_by(SPAN as usize)
}

/// Notes pages: `open` ones are writable, `dirty` ones are to be reported.
pub fn note(start: u64, end: u64, open: bool, dirty: bool) {
    let t = table();
    for span in spans(start, end) {
        let Some(i) = t.make(span) else { return };
        for w in 0..WORDS {
            let m = mask(span, w, start, end);
            if open {
                t.blocks[i].open[w] |= m;
            }
            if dirty {
                t.blocks[i].dirty[w] |= m;
            }
        }
        if dirty {
            t.list(i);
        }
    }
}

/// The pages are armed now, or gone; with `clean` they need not be reported either.
pub fn close(start: u64, end: u64, clean: bool) {
    let t = table();
    let n = t.used_count;
    let clear = |b: &mut Block, span: u64| {
        for w in 0..WORDS {
            let m = !mask(span, w, start, end);
            b.open[w] &= m;
            if clean {
                b.dirty[w] &= m;
            }
        }
    };
    if (end - start) / SPAN > n as u64 {
        for k in 0..n {
            let b = &mut t.blocks[t.used[k] as usize];
            let span = b.key - 1;
            if span < end && span + SPAN > start {
                clear(b, span);
            }
        }
        return;
    }
    for span in spans(start, end) {
        if let Some(i) = t.find(span) {
            clear(&mut t.blocks[i], span);
        }
    }
}

/// Is the page writable?
pub fn is_open(page: u64) -> bool {
    let (t, span) = (table(), page & !(SPAN - 1));
    let n = (page - span) >> 12;
    t.find(span).is_some_and(|i| t.blocks[i].open[n as usize / 64] >> (n % 64) & 1 != 0)
}

/// Which pages are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Open,
    Closed,
    Dirty,
}

/// Is any page of the range of that kind?
pub fn any(start: u64, end: u64, which: Which) -> bool {
    next(start, end, which) < end
}

/// The first page from `start` on that is of that kind; `end` if there is none.
pub fn next(start: u64, end: u64, which: Which) -> u64 {
    let t = table();
    if which == Which::Closed || (end - start) / SPAN <= t.used_count as u64 {
        let found = spans(start, end).map(|span| t.next(span, start, end, which)).find(|&page| page < end);
        return found.unwrap_or(end);
    }
    let used = t.used[..t.used_count].iter().map(|&i| t.blocks[i as usize].key - 1);
    let there = used.filter(|&span| span < end && span + SPAN > start);
    there.map(|span| t.next(span, start, end, which)).min().unwrap_or(end)
}

/// Is there nothing to be reported?
pub fn is_clean() -> bool {
    table().listed_count == 0
}

/// Was there a page that could not be noted?
pub fn has_overflown() -> bool {
    table().overflow
}

/// Takes the dirty pages of `low..high`, multiples of a span but for the first page, in ascending order.
pub fn take(low: u64, high: u64, f: &mut dyn FnMut(u64, u64)) {
    let t = table();
    let n = t.listed_count;
    let (waiting, taken) = t.listed.split_at_mut(BLOCKS);
    let (mut kept, mut count) = (0, 0);
    for k in 0..n {
        let i = waiting[k];
        if (low & !(SPAN - 1)..high).contains(&(t.blocks[i as usize].key - 1)) {
            taken[count] = i;
            count += 1;
        } else {
            waiting[kept] = i;
            kept += 1;
        }
    }
    let blocks = &t.blocks;
    taken[..count].sort_unstable_by_key(|&i| blocks[i as usize].key);
    t.listed_count = kept;
    let mut run = (0, 0);
    for k in 0..count {
        // Fetched anew: `f` notes and closes pages.
        let t = table();
        let block = &mut t.blocks[t.listed[BLOCKS + k] as usize];
        let (span, dirty) = (block.key - 1, block.dirty);
        (block.dirty, block.listed) = ([0; WORDS], 0);
        for (w, &word) in dirty.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let from = bits.trailing_zeros() as u64;
                let len = (!(bits >> from)).trailing_zeros() as u64;
                bits &= !((if len == 64 { !0 } else { (1 << len) - 1 }) << from);
                let start = span + (w as u64 * 64 + from) * 4096;
                if start == run.1 {
                    run.1 += len * 4096;
                    continue;
                }
                if run.0 != run.1 {
                    f(run.0, run.1);
                }
                run = (start, start + len * 4096);
            }
        }
    }
    if run.0 != run.1 {
        f(run.0, run.1);
    }
}

/// Forgets blocks without any page, once the table is half full. Not during `take`.
pub fn tidy() {
    let t = table();
    if t.used_count < BLOCKS / 2 {
        return;
    }
    let is_living = |b: &Block| b.listed != 0 || b.open != [0; WORDS];
    let living = t.used[..t.used_count].iter().filter(|&&i| is_living(&t.blocks[i as usize])).count();
    if living > SPARE {
        return;
    }
    // Nothing can be taken out of an open-addressed table alone: everything out, the living in again.
    let mut n = 0;
    for &i in &t.used[..t.used_count] {
        let b = core::mem::replace(&mut t.blocks[i as usize], Block { ..EMPTY });
        if is_living(&b) {
            t.spare[n] = b;
            n += 1;
        }
    }
    (t.used_count, t.listed_count) = (0, 0);
    for k in 0..n {
        let b = t.spare[k];
        if let Some(i) = t.make(b.key - 1) {
            t.blocks[i] = Block { listed: 0, ..b };
            if b.listed != 0 {
                t.list(i);
            }
        }
    }
}
