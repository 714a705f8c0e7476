//! Which blocks are free. In the instance's memory only: it follows from the entries.

use super::BLOCKS;

pub struct Blocks {
    /// A bit each, set where the block is taken; block 0 always is.
    taken: Vec<u64>,
    free: u32,
    /// No word before this one has a free block.
    first: usize,
}

impl Blocks {
    pub fn new() -> Self {
        let mut taken = vec![0; BLOCKS as usize / 64 + 1];
        let last = taken.len() - 1;
        taken[0] = 1;
        // The last word has one block.
        taken[last] = !1;
        Self { taken, free: BLOCKS, first: 0 }
    }

    pub fn free(&self) -> u32 {
        self.free
    }

    /// False where there is no such block, or it was taken before.
    pub fn mark(&mut self, block: u32) -> bool {
        let Some(word) = self.taken.get_mut(block as usize / 64) else { return false };
        let bit = 1 << (block % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        self.free -= u32::from(fresh);
        fresh
    }

    pub fn take(&mut self) -> Option<u32> {
        while *self.taken.get(self.first)? == u64::MAX {
            self.first += 1;
        }
        let block = self.first as u32 * 64 + self.taken[self.first].trailing_ones();
        self.mark(block);
        Some(block)
    }

    pub fn give(&mut self, block: u32) {
        let at = block as usize / 64;
        let bit = 1 << (block % 64);
        if block != 0 && block <= BLOCKS && self.taken[at] & bit != 0 {
            self.taken[at] &= !bit;
            self.free += 1;
            self.first = self.first.min(at);
        }
    }
}
