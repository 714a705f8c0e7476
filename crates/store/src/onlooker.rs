//! Looking at a store that somebody else is writing to.

use crate::areas::{FOLDING, OPENINGS};
use crate::error::StoreError;
use crate::fold::{each_line, LINE};
use crate::head::Head;
use crate::record::Entry;
use crate::region::Region;
use crate::ring::Entries;
use crate::store::Store;
use crate::superblock::Superblock;
use crate::word::unseal;
use crate::PAGE;

impl<R: Region> Store<'_, R> {
    /// Whether the region still holds all of the state that this store was opened with: no fold has begun since, nobody has opened
    /// it to go on from its last commit, nor was the region formatted. What was read before the question was asked is then the state of one commit, [`Store::seq`].
    pub fn still_holds(&self) -> bool {
        let folding = self.region.load(FOLDING);
        let unfolded = folding == 0 || unseal(folding).is_some_and(|epoch| epoch != self.head.epoch);
        let head = Head::choose(&self.region, self.cpu, self.seed);
        unfolded
            && self.region.load(OPENINGS) == self.openings
            && head.is_some_and(|(newest, _)| newest == self.head)
            && Superblock::read(&self.region).is_ok_and(|superblock| superblock == self.superblock)
    }

    /// Calls `f(address of the page, offset in it, region offset, length)` for every piece of a page that the ring holds,
    /// oldest first. A present page's frame with all of its pieces put over it is the page as of the last commit; where a
    /// piece is the whole page, the frame and the pieces before it do not matter.
    ///
    /// # Errors
    /// `Damaged` if the records are not those that were found valid.
    pub fn each_logged(&self, f: &mut dyn FnMut(u64, u64, u64, u64)) -> Result<(), StoreError> {
        let mut entries = Entries::of_records(self.superblock.areas.ring, self.ring_used);
        while let Some(entry) = entries.next(&self.region)? {
            match entry {
                Entry::Page { addr, at, .. } => f(addr, 0, at, PAGE),
                Entry::Lines { addr, mask, at, .. } => each_line(mask, at, |from, line| f(addr, line, from, LINE)),
                _ => {}
            }
        }
        Ok(())
    }
}
