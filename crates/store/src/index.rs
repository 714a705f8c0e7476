//! What the store knows about pages, in working memory: which chunk has which frames, and three bits a page.

use crate::areas::{CHUNK, PAGE};
use crate::bitmap::{is_set, mask, set, Bitmap};
use bytemuck::{Pod, Zeroable};

/// The table of head slot 0 (1) does not yet say what this state says.
pub const STALE: [u32; 2] = [1, 2];
/// The chunk is in the list of touched chunks of this epoch.
pub const TOUCHED: u32 = 4;
/// The chunk has an address.
pub const MAPPED: u32 = 8;

/// One chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ChunkState {
    /// Address of its first page.
    pub addr: u64,
    /// Pages that are present now.
    pub live: Bitmap,
    /// Frames with content that the folded or the published state needs: not to be written before the next fold.
    pub busy: Bitmap,
    /// Pages with content in the ring that is newer than their frame.
    pub logged: Bitmap,
    /// Pages that were folded whole in this process: their frames are worth being mapped.
    pub folded: Bitmap,
    /// [`STALE`], [`TOUCHED`], [`MAPPED`].
    pub flags: u32,
    /// Next in the list of free chunks.
    next: u32,
}

const NONE: u32 = u32::MAX;
const INDEX_BITS: u32 = 24;

/// Number of the page at `addr` in its chunk.
#[inline]
pub fn page_of(addr: u64) -> u32 {
    (addr % CHUNK / PAGE) as u32
}

/// All chunks.
pub struct ChunkIndex<'s> {
    states: &'s mut [ChunkState],
    /// `chunk number << 24 | index` of every mapped chunk, ascending.
    order: &'s mut [u64],
    mapped: usize,
    used: u32,
    free: u32,
    last: (u64, u32),
}

impl<'s> ChunkIndex<'s> {
    /// An empty index for as many chunks as both slices hold.
    pub fn new(states: &'s mut [ChunkState], order: &'s mut [u64]) -> ChunkIndex<'s> {
        ChunkIndex { states, order, mapped: 0, used: 0, free: NONE, last: (u64::MAX, NONE) }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.mapped, self.used, self.free, self.last) = (0, 0, NONE, (u64::MAX, NONE));
    }

    /// Indices below this were used at some time.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// How many chunks there can be.
    pub fn capacity(&self) -> u32 {
        self.states.len().min(self.order.len()) as u32
    }

    /// The state of chunk `index`, below [`ChunkIndex::used`].
    #[inline]
    pub fn state(&self, index: u32) -> &ChunkState {
        &self.states[index as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub fn state_mut(&mut self, index: u32) -> &mut ChunkState {
        &mut self.states[index as usize]
    }

    fn position(&self, chunk: u64) -> Result<usize, usize> {
        let key = chunk / CHUNK;
        let order = &self.order[..self.mapped];
        let at = order.partition_point(|entry| entry >> INDEX_BITS < key);
        match order.get(at) {
            Some(entry) if entry >> INDEX_BITS == key => Ok(at),
            _ => Err(at),
        }
    }

    fn index_at(&self, position: usize) -> u32 {
        (self.order[position] & ((1 << INDEX_BITS) - 1)) as u32
    }

    /// The index of the chunk that holds `addr`.
    #[inline]
    pub fn find(&self, addr: u64) -> Option<u32> {
        let chunk = addr & !(CHUNK - 1);
        if self.last.0 == chunk {
            return Some(self.last.1);
        }
        self.position(chunk).ok().map(|at| self.index_at(at))
    }

    /// The same; remembers the answer.
    #[inline]
    pub fn locate(&mut self, addr: u64) -> Option<u32> {
        let index = self.find(addr)?;
        self.last = (addr & !(CHUNK - 1), index);
        Some(index)
    }

    /// Makes indices below `used` exist, without addresses.
    pub fn extend(&mut self, used: u32) {
        while self.used < used {
            self.states[self.used as usize] = ChunkState { flags: STALE[0] | STALE[1], ..ChunkState::zeroed() };
            self.used += 1;
        }
    }

    /// Gives chunk address `chunk` the frames `index`. False if either is taken, or there is no such index.
    pub fn map(&mut self, chunk: u64, index: u32) -> bool {
        let Err(at) = self.position(chunk) else { return false };
        if index >= self.capacity() {
            return false;
        }
        self.extend(index + 1);
        if self.state(index).flags & MAPPED != 0 {
            return false;
        }
        self.order.copy_within(at..self.mapped, at + 1);
        self.order[at] = (chunk / CHUNK) << INDEX_BITS | index as u64;
        self.mapped += 1;
        *self.state_mut(index) =
            ChunkState { addr: chunk, flags: MAPPED | STALE[0] | STALE[1], ..ChunkState::zeroed() };
        true
    }

    /// Finds frames for chunk address `chunk`, which has none.
    pub fn allocate(&mut self, chunk: u64) -> Option<u32> {
        let index = if self.free != NONE { self.free } else { self.used };
        let next = if self.free != NONE { self.state(self.free).next } else { NONE };
        if !self.map(chunk, index) {
            return None;
        }
        self.free = next;
        Some(index)
    }

    /// Takes the addresses of chunks without a present page, and lists every chunk without an address as free.
    pub fn collect_free(&mut self) {
        self.last = (u64::MAX, NONE);
        for state in &mut self.states[..self.used as usize] {
            if state.live == [0; 8] && state.flags & MAPPED != 0 {
                state.flags = STALE[0] | STALE[1];
            }
        }
        let (states, mut kept) = (&*self.states, 0);
        for at in 0..self.mapped {
            let entry = self.order[at];
            if states[(entry & ((1 << INDEX_BITS) - 1)) as usize].flags & MAPPED != 0 {
                self.order[kept] = entry;
                kept += 1;
            }
        }
        self.mapped = kept;
        self.list_free();
    }

    /// Lists every chunk without an address as free, the lowest first.
    pub fn list_free(&mut self) {
        self.free = NONE;
        for index in (0..self.used).rev() {
            let state = &mut self.states[index as usize];
            if state.flags & MAPPED == 0 {
                state.next = self.free;
                self.free = index;
            }
        }
    }

    /// Calls `f(index)` for every chunk that overlaps `start..end`, in the order of addresses.
    pub fn each_in(&self, start: u64, end: u64, mut f: impl FnMut(u32)) {
        let (Ok(from) | Err(from)) = self.position(start & !(CHUNK - 1));
        for at in from..self.mapped {
            if self.order[at] >> INDEX_BITS >= end.div_ceil(CHUNK) {
                break;
            }
            f(self.index_at(at));
        }
    }

    /// Makes the pages of `start..end` absent.
    pub fn drop_range(&mut self, start: u64, end: u64) {
        let (Ok(from) | Err(from)) = self.position(start & !(CHUNK - 1));
        for at in from..self.mapped {
            if self.order[at] >> INDEX_BITS >= end.div_ceil(CHUNK) {
                break;
            }
            let index = self.index_at(at);
            let state = self.state_mut(index);
            let low = start.saturating_sub(state.addr).min(CHUNK) / PAGE;
            let high = end.saturating_sub(state.addr).min(CHUNK) / PAGE;
            for (live, gone) in state.live.iter_mut().zip(mask(low as u32, high as u32)) {
                if *live & gone != 0 {
                    state.flags |= STALE[0] | STALE[1];
                    *live &= !gone;
                }
            }
        }
    }

    /// Pages present.
    pub fn live_pages(&self) -> u64 {
        let chunks = self.states[..self.used as usize].iter();
        chunks.map(|state| state.live.iter().map(|word| word.count_ones() as u64).sum::<u64>()).sum()
    }

    /// Chunks with an address.
    pub fn mapped(&self) -> usize {
        self.mapped
    }
}

impl ChunkState {
    /// Page `page` is present from now on.
    #[inline]
    pub fn make_live(&mut self, page: u32) {
        if !is_set(&self.live, page) {
            set(&mut self.live, page);
            self.flags |= STALE[0] | STALE[1];
        }
    }
}
