//! The program's regions as they would be without a tracker that takes permissions away and cuts mappings into pieces.

use super::areas::{self, area_flag, Area};
use crate::joined_regions::JoinedRegions;
use crate::regions::Mapped;
use outlast_image::region::{backing, region_flag, Region};

/// Calls `f` with the regions behind the lines of /proc/self/maps that are passed to [`RealMap::line`].
pub struct RealMap<'a, F: FnMut(Mapped<'a>)> {
    pieces: JoinedRegions<'a, F>,
}

impl<'a, F: FnMut(Mapped<'a>)> RealMap<'a, F> {
    pub fn new(f: F) -> Self {
        RealMap { pieces: JoinedRegions::new(f) }
    }

    /// The next line, in ascending order.
    pub fn line(&mut self, shown: Mapped<'a>) {
        extend_stack(&shown.region);
        let mut at = shown.region.start;
        while at < shown.region.end {
            let area = areas::all().get(areas::index(at)).filter(|a| a.start < shown.region.end).copied();
            let piece = match area {
                Some(area) if area.start <= at => real(cut(&shown, at, area.end.min(shown.region.end)), &area),
                Some(area) => cut(&shown, at, area.start),
                None => cut(&shown, at, shown.region.end),
            };
            at = piece.region.end;
            self.pieces.put(piece);
        }
    }

    /// After the last line.
    pub fn end(self) {
        self.pieces.end();
    }
}

/// The kernel extends a stack without asking.
fn extend_stack(r: &Region) {
    let i = areas::index(r.start);
    if let Some(area) = areas::all().get_mut(i).filter(|a| a.is(area_flag::GROWSDOWN)) {
        if r.start < area.start && r.end > area.start {
            area.start = r.start;
        }
    }
}

fn cut<'a>(shown: &Mapped<'a>, start: u64, end: u64) -> Mapped<'a> {
    let r = shown.region;
    let offset = if r.inode != 0 { r.offset + (start - r.start) } else { r.offset };
    Mapped { region: Region { start, end, offset, ..r }, path: shown.path }
}

fn real<'a>(piece: Mapped<'a>, area: &Area) -> Mapped<'a> {
    let mut r = piece.region;
    if area.is_tracked() {
        r.prot = area.prot;
    }
    if area.is(area_flag::STACK) {
        (r.backing, r.flags) = (backing::STACK, r.flags | region_flag::GROWSDOWN);
    }
    Mapped { region: r, path: piece.path }
}
