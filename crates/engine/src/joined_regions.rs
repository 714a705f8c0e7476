//! Regions that were cut into pieces, put together again.

use crate::regions::Mapped;
use outlast_image::region::backing;

/// Calls `f` with the regions that the pieces passed to [`JoinedRegions::put`] make up.
pub struct JoinedRegions<'a, F: FnMut(Mapped<'a>)> {
    held: Option<Mapped<'a>>,
    f: F,
}

impl<'a, F: FnMut(Mapped<'a>)> JoinedRegions<'a, F> {
    pub fn new(f: F) -> Self {
        JoinedRegions { held: None, f }
    }

    /// The next piece, in ascending order.
    pub fn put(&mut self, piece: Mapped<'a>) {
        match &mut self.held {
            Some(held) if continues(held, &piece) => held.region.end = piece.region.end,
            _ => self.put_apart(piece),
        }
    }

    /// The next piece, which is no part of the region before it.
    pub fn put_apart(&mut self, piece: Mapped<'a>) {
        if let Some(whole) = self.held.replace(piece) {
            (self.f)(whole);
        }
    }

    /// After the last piece.
    pub fn end(mut self) {
        if let Some(whole) = self.held.take() {
            (self.f)(whole);
        }
    }
}

fn continues(held: &Mapped<'_>, piece: &Mapped<'_>) -> bool {
    let (a, b) = (&held.region, &piece.region);
    let same_file = a.inode == b.inode && a.dev == b.dev && a.offset + (a.end - a.start) == b.offset;
    let anonymous = matches!(a.backing, backing::ANONYMOUS | backing::HEAP | backing::STACK);
    a.end == b.start
        && (a.prot, a.backing, a.flags) == (b.prot, b.backing, b.flags)
        && (anonymous || same_file)
        && held.path == piece.path
}
