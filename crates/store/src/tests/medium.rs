//! A medium that loses power: what was synced is kept; of the rest, any subset of 512-byte sectors, each in any of the
//! versions it had since.

use super::image::{Image, Op};
use crate::PAGE;
use std::collections::BTreeMap;
use std::vec::Vec;

const SECTOR: u64 = 512;
type Sector = [u8; SECTOR as usize];

/// A sector of which nobody knows what is on the medium.
#[derive(Clone, Default)]
pub struct Unsynced {
    /// Every version in the cache since it was synced.
    versions: Vec<Sector>,
    /// A sync of it failed: the kernel takes it for clean and does not write it again.
    forgotten: bool,
}

/// A medium with a volatile cache before it.
#[derive(Clone)]
pub struct Medium {
    /// What was synced.
    synced: Image,
    /// What a reader sees.
    pub cached: Image,
    /// Sectors that were changed since they were synced.
    pub unsynced: BTreeMap<u64, Unsynced>,
}

impl Medium {
    pub fn new(image: Image) -> Medium {
        Medium { synced: image.clone(), cached: image, unsynced: BTreeMap::new() }
    }

    pub fn apply(&mut self, op: &Op) {
        self.cached.apply(op);
        let (off, len) = match op {
            Op::Write { off, bytes } => (*off, bytes.len() as u64),
            Op::Publish { off, .. } => (*off, 8),
            Op::Discard { off, len } => return self.discard(*off, *len),
            Op::Sync { off, len } => return self.sync(*off, *len, true),
            Op::FailedSync { off, len } => return self.sync(*off, *len, false),
        };
        if len > 0 {
            (off / SECTOR..=(off + len - 1) / SECTOR).for_each(|sector| self.changed(sector));
        }
    }

    fn changed(&mut self, sector: u64) {
        let mut version = [0; SECTOR as usize];
        self.cached.read(sector * SECTOR, &mut version);
        let unsynced = self.unsynced.entry(sector).or_default();
        unsynced.versions.push(version);
        unsynced.forgotten = false;
    }

    /// Only sectors that hold something change.
    fn discard(&mut self, off: u64, len: u64) {
        let inside = |page: &u64| (off / PAGE..(off + len) / PAGE).contains(page);
        let stored: Vec<u64> = self.synced.pages().map(|(page, _)| page).filter(inside).collect();
        let sectors = |page: u64| page * PAGE / SECTOR..(page + 1) * PAGE / SECTOR;
        let mut gone: Vec<u64> = stored.into_iter().flat_map(sectors).collect();
        gone.extend(self.unsynced.range(off / SECTOR..(off + len) / SECTOR).map(|(sector, _)| *sector));
        gone.sort_unstable();
        gone.dedup();
        gone.into_iter().for_each(|sector| self.changed(sector));
    }

    fn sync(&mut self, off: u64, len: u64, done: bool) {
        let sectors: Vec<u64> =
            self.unsynced.range(off / SECTOR..(off + len) / SECTOR).map(|(sector, _)| *sector).collect();
        for sector in sectors {
            let unsynced = self.unsynced.get_mut(&sector).expect("listed");
            if !done {
                unsynced.forgotten = true;
            } else if !unsynced.forgotten {
                self.synced.write(sector * SECTOR, unsynced.versions.last().expect("never empty"));
                self.unsynced.remove(&sector);
            }
        }
    }

    /// What is left if `choose(versions)` says which version of a sector arrived: 0 for none, n for the n-th.
    pub fn after_power_loss(&self, mut choose: impl FnMut(usize) -> usize) -> Image {
        let mut left = self.synced.clone();
        for (sector, Unsynced { versions, .. }) in &self.unsynced {
            if let Some(version) = choose(versions.len()).checked_sub(1) {
                left.write(sector * SECTOR, &versions[version]);
            }
        }
        left
    }
}
