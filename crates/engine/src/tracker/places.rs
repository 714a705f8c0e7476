//! Where written pages may lie: ranges that are suspected, and chunks in which some were found lately.

use outlast_image::layout::USER_END;

/// Bytes of a chunk: what one page table maps, and so what one fault can fill at most (a huge page).
pub const CHUNK: u64 = 2 << 20;

/// The chunk of an address.
pub fn chunk_of(address: u64) -> (u64, u64) {
    let start = address & !(CHUNK - 1);
    (start, start + CHUNK)
}

const RANGES: usize = 16;

/// Ranges, as many as there is room for.
pub struct Ranges {
    ranges: [(u64, u64); RANGES],
    count: usize,
}

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges { ranges: [(0, 0); RANGES], count: 0 }
    }

    /// Adds the pages of a range, joined with one that it touches. False: there is no room.
    pub fn add(&mut self, start: u64, end: u64) -> bool {
        let (start, end) = (start & !4095, end.saturating_add(4095).min(USER_END) & !4095);
        if start >= end {
            return true;
        }
        if let Some((a, b)) = self.ranges[..self.count].iter_mut().find(|(a, b)| start <= *b && *a <= end) {
            (*a, *b) = (start.min(*a), end.max(*b));
            return true;
        }
        if self.count == RANGES {
            return false;
        }
        self.ranges[self.count] = (start, end);
        self.count += 1;
        true
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn contains(&self, page: u64) -> bool {
        self.ranges[..self.count].iter().any(|&(start, end)| (start..end).contains(&page))
    }

    /// Is there a range that this one overlaps, or continues?
    pub fn touches(&self, start: u64, end: u64) -> bool {
        self.ranges[..self.count].iter().any(|&(a, b)| start <= b && a <= end)
    }

    /// The part in `from..to` of the first range there.
    pub fn next(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let parts = self.ranges[..self.count].iter().map(|&(start, end)| (start.max(from), end.min(to)));
        parts.filter(|(start, end)| start < end).min()
    }

    /// Takes one out.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        self.count = self.count.checked_sub(1)?;
        Some(self.ranges[self.count])
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }
}

const RECENT: usize = 16;

/// Chunks, the one used last in front.
pub struct Recent {
    chunks: [u64; RECENT],
}

impl Recent {
    pub const fn new() -> Recent {
        Recent { chunks: [0; RECENT] }
    }

    /// Moves the chunk of an address to the front.
    pub fn note(&mut self, address: u64) {
        let chunk = chunk_of(address).0;
        let at = self.chunks.iter().position(|&c| c == chunk).unwrap_or(RECENT - 1);
        self.chunks.copy_within(..at, 1);
        self.chunks[0] = chunk;
    }

    /// All of them; 0 stands for none.
    pub fn all(&self) -> [u64; RECENT] {
        self.chunks
    }
}
