//! What the newest generation holds of each page, so that the next one stores only what changed.

use crate::block::Spot;
use crate::index::Piece;
use outlast_store::PAGE;
use std::collections::HashSet;
use twox_hash::XxHash3_128;

/// A page that is in a block.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub addr: u64,
    /// Of its content: 128 bits, so that two contents never look alike.
    pub hash: u128,
    pub spot: Spot,
    /// Bytes of the block, and pages in it.
    pub len: u32,
    pub pages: u16,
    /// Which of them it is.
    pub first: u16,
}

/// The hash of a page's content.
pub fn hash(page: &[u8]) -> u128 {
    XxHash3_128::oneshot(page)
}

/// All pages, in the order of addresses.
#[derive(Default)]
pub struct Pages(pub Vec<Known>);

impl Pages {
    /// The pages as an index lists them.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for known in &self.0 {
            let piece = Piece {
                addr: known.addr,
                file: known.spot.file,
                off: known.spot.off,
                len: known.len,
                count: 1,
                first: known.first,
            };
            match pieces.last_mut() {
                Some(last)
                    if last.end() == known.addr
                        && last.spot() == known.spot
                        && last.first + last.count == known.first =>
                {
                    last.count += 1;
                }
                _ => pieces.push(piece),
            }
        }
        pieces
    }

    /// Whether more than half of what the blocks hold is of no use any more: everything is then stored anew.
    pub fn is_worn(&self) -> bool {
        let mut blocks = HashSet::new();
        let stored = self.0.iter().filter(|known| blocks.insert(known.spot)).map(|known| u64::from(known.pages));
        stored.sum::<u64>() > 2 * self.0.len() as u64
    }

    /// Walks along, page by page, in ascending order.
    pub fn cursor<'k>(&'k self) -> impl FnMut(u64) -> Option<&'k Known> {
        let mut rest = &self.0[..];
        move |addr| {
            let skip = rest.iter().take_while(|known| known.addr < addr).count();
            rest = &rest[skip..];
            rest.first().filter(|known| known.addr == addr)
        }
    }
}

/// Pages that are about to become a block.
#[derive(Default)]
pub struct Pending {
    pub bytes: Vec<u8>,
    /// Address and hash of each.
    pub pages: Vec<(u64, u128)>,
}

impl Pending {
    /// Whether the page at `addr` goes into the same block.
    pub fn takes(&self, addr: u64) -> bool {
        self.pages.len() < crate::block::MOST && self.pages.last().is_none_or(|(last, _)| last + PAGE == addr)
    }
}
