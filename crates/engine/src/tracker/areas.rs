//! The program's mappings with the protections that the program gave them.
//!
//! /proc/self/maps shows what a write-protecting tracker has made of them; the truth is here. A sorted array: looking
//! up is done at every fault, inserting at every mmap.

use crate::scratch;
use crate::sorted::{ranged, Ranged, Sorted};
use outlast_image::region::{backing, region_flag, Region};

pub const PROT_READ: u32 = 1;
pub const PROT_WRITE: u32 = 2;
pub const PROT_EXEC: u32 = 4;

/// Flags of an area.
pub mod area_flag {
    /// Backed by a file, mapped privately.
    pub const FILE: u32 = 1;
    /// Shared memory that is the program's own.
    pub const SHARED: u32 = 2;
    /// Shared file mappings, and what the kernel maps itself: not the program's own content.
    pub const FOREIGN: u32 = 4;
    /// Grows downwards by itself.
    pub const GROWSDOWN: u32 = 8;
    /// The initial stack.
    pub const STACK: u32 = 16;
    /// The kernel has an `anon_vma` for it: pieces cut off it can be joined again.
    pub const ROOTED: u32 = 32;
}

/// One mapping, or several adjacent ones with the same protection.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub start: u64,
    pub end: u64,
    /// `PROT_*`, as the program wants it.
    pub prot: u32,
    /// Bits of [`area_flag`].
    pub flags: u32,
}

impl Area {
    pub fn of(r: &Region) -> Area {
        let flags = match r.backing {
            _ if r.flags & region_flag::GROUP != 0 => area_flag::FOREIGN,
            backing::KERNEL | backing::SHARED_FILE | backing::CONTEXT => area_flag::FOREIGN,
            backing::PRIVATE_FILE => area_flag::FILE,
            backing::SHARED_ANONYMOUS | backing::SEGMENT | backing::OWN_FILE => area_flag::SHARED,
            backing::STACK => area_flag::GROWSDOWN | area_flag::STACK,
            _ => 0,
        };
        Area { start: r.start, end: r.end, prot: r.prot, flags }
    }

    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Can the program write there, and is it the program's own?
    pub fn is_tracked(&self) -> bool {
        self.prot & PROT_WRITE != 0 && !self.is(area_flag::FOREIGN)
    }

    /// Does `next` follow with the same protection, and differ at most in being rooted?
    fn can_join(&self, next: &Area) -> bool {
        self.end == next.start && self.prot == next.prot && (self.flags ^ next.flags) & !area_flag::ROOTED == 0
    }
}

ranged!(Area);

/// Bytes before the table: its count, and the tracker's own state from byte 64 on.
const HEAD: u64 = 4096;
/// Areas that fit.
pub const ROOM: usize = 1 << 17;
/// Bytes of the table, its count included.
pub const LEN: u64 = HEAD + (ROOM * core::mem::size_of::<Area>()) as u64;

fn count() -> *mut usize {
    scratch::tracker().0 as *mut usize
}

fn array() -> *mut Area {
    (scratch::tracker().0 + HEAD) as *mut Area
}

/// All areas, in ascending order.
pub fn all() -> &'static mut [Area] {
    // SAFETY: the table lies in the engine's working memory, which `scratch::map` zeroed; one thread. Callers keep the
    // slice no longer than to their next call of this module.
    unsafe { core::slice::from_raw_parts_mut(array(), *count()) }
}

fn sorted() -> Sorted<'static, Area> {
    // SAFETY: as in `all`, with all the room that the table has.
    unsafe { Sorted::new(core::slice::from_raw_parts_mut(array(), ROOM), &mut *count()) }
}

/// Index of the first area that ends behind `address`.
pub fn index(address: u64) -> usize {
    sorted().index(address)
}

/// The area with `address` in it.
pub fn find(address: u64) -> Option<&'static mut Area> {
    all().get_mut(index(address)).filter(|a| a.start <= address)
}

/// Calls `f` with the part in `start..end` of each area there.
pub fn each(start: u64, end: u64, mut f: impl FnMut(Area)) {
    let mut at = start;
    while at < end {
        // Looked up anew: `f` may change the table.
        let Some(area) = all().get(index(at)).filter(|a| a.start < end).copied() else { return };
        let part = area.part(at.max(area.start), end.min(area.end));
        at = part.end;
        f(part);
    }
}

/// Is there no gap in `start..end`, and nothing that is not tracked once it can be written?
pub fn is_plain(start: u64, end: u64) -> bool {
    let mut at = start;
    each(start, end, |a| {
        if a.start == at && !a.is(area_flag::FOREIGN) {
            at = a.end;
        }
    });
    at == end
}

/// Forgets `start..end`. False: there is no room for the pieces left over.
pub fn remove(start: u64, end: u64) -> bool {
    sorted().remove(start, end)
}

/// Puts `area` where nothing is, joined with its neighbours if they are alike. False: there is no room.
pub fn insert(mut area: Area) -> bool {
    let (mut first, areas) = (index(area.start), all());
    let mut last = first;
    if let Some(before) = first.checked_sub(1).map(|i| areas[i]).filter(|b| b.can_join(&area)) {
        area = Area { start: before.start, flags: area.flags & before.flags, ..area };
        first -= 1;
    }
    if let Some(after) = areas.get(last).filter(|a| area.can_join(a)) {
        area = Area { end: after.end, flags: area.flags & after.flags, ..area };
        last += 1;
    }
    sorted().splice(first, last, &[area])
}

/// Gives `start..end` another protection. False: there is no room.
pub fn protect(start: u64, end: u64, prot: u32) -> bool {
    let mut fits = true;
    each(start, end, |part| {
        fits &= remove(part.start, part.end) && insert(Area { prot, ..part });
    });
    fits
}
