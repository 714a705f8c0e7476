//! Pages of code that were written since the last commit. They are not writable, so the tracker does not see them.

use crate::user;
use outlast_store::{MappedRegion, Store};

const MOST: usize = 512;
/// A patch takes two pages at most, its stub two more; as much again is kept for undoing patches.
const ROOM_FOR_A_PATCH: usize = MOST / 2;
const PAGE: u64 = 4096;

/// See the module.
pub struct Unsaved {
    pages: [u64; MOST],
    count: usize,
}

impl Unsaved {
    pub const fn new() -> Self {
        Unsaved { pages: [0; MOST], count: 0 }
    }

    /// May another patch be made before the next commit?
    pub fn has_room(&self) -> bool {
        self.count + 4 <= ROOM_FOR_A_PATCH
    }

    /// Notes that `len` bytes at `address` were written. False if there is no room.
    pub fn add(&mut self, address: u64, len: usize) -> bool {
        (address & !(PAGE - 1)..address + len as u64).step_by(PAGE as usize).all(|page| self.add_page(page))
    }

    fn add_page(&mut self, page: u64) -> bool {
        if self.pages[..self.count].contains(&page) {
            return true;
        }
        let Some(slot) = self.pages.get_mut(self.count) else { return false };
        *slot = page;
        self.count += 1;
        true
    }

    /// The pages of `start..end` are gone.
    pub fn remove(&mut self, start: u64, end: u64) {
        let mut i = 0;
        while i < self.count {
            if (start..end).contains(&self.pages[i]) {
                self.count -= 1;
                self.pages[i] = self.pages[self.count];
            } else {
                i += 1;
            }
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Stores the pages in the transaction that is open.
    pub fn save(&mut self, store: &mut Store<'_, MappedRegion>) {
        for &page in &self.pages[..self.count] {
            let mut bytes = [0; PAGE as usize];
            // A program that took away the permission to read committed right before.
            if user::read_bytes(page, &mut bytes) {
                store.page(page, &bytes);
            }
        }
        self.count = 0;
    }
}
