//! Reading the state: pages, where they lie in the file, objects.

use crate::areas::{CHUNK, PAGE};
use crate::bitmap::{each_run, is_set, mask};
use crate::diff::Page;
use crate::error::StoreError;
use crate::fold::each_line;
use crate::index::page_of;
use crate::record::{is_page, Entry};
use crate::region::Region;
use crate::ring::Entries;
use crate::store::Store;

impl<R: Region> Store<'_, R> {
    /// Offset of the page's frame in the region; None if the page is absent. The frame holds the page as of the last fold.
    #[inline]
    pub fn frame_of(&self, addr: u64) -> Option<u64> {
        let index = self.chunks.find(addr)?;
        is_set(&self.chunks.state(index).live, page_of(addr)).then(|| self.superblock.areas.frame(index, page_of(addr)))
    }

    /// Calls `f(address, region offset, length)` for the maximal pieces of present pages in `start..end` that are
    /// contiguous both in memory and in the region, in the order of addresses.
    pub fn runs(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64, u64)) {
        let mut joined = Joined::new(f);
        self.chunks.each_in(start, end, |index| {
            let state = self.chunks.state(index);
            let (low, high) = self.pages_within(state.addr, start, end);
            let mut wanted = mask(low, high);
            wanted.iter_mut().zip(state.live).for_each(|(wanted, live)| *wanted &= live);
            each_run(&wanted, |first, count| {
                let addr = state.addr + first as u64 * PAGE;
                joined.add(addr, self.superblock.areas.frame(index, first), count as u64 * PAGE);
            });
        });
        joined.finish();
    }

    /// Calls `f(address, region offset, length)` for the maximal pieces of `start..end` that have frames, whether their
    /// pages are present or not, in the order of addresses. After a fold, absent pages' frames read as zero.
    pub fn chunk_runs(&self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64, u64)) {
        let mut joined = Joined::new(f);
        self.chunks.each_in(start, end, |index| {
            let state = self.chunks.state(index);
            let (low, high) = self.pages_within(state.addr, start, end);
            if low < high {
                let addr = state.addr + low as u64 * PAGE;
                joined.add(addr, self.superblock.areas.frame(index, low), (high - low) as u64 * PAGE);
            }
        });
        joined.finish();
    }

    fn pages_within(&self, chunk: u64, start: u64, end: u64) -> (u32, u32) {
        let page = |addr: u64| (addr.saturating_sub(chunk).min(CHUNK) / PAGE) as u32;
        (page(start), page(end))
    }

    /// Reads a page; an absent one is zero, and the answer is false. Outside a transaction only.
    ///
    /// Fast where the frame is up to date; otherwise the ring is searched for what changed: fold before reading many.
    ///
    /// # Errors
    /// `InTransaction`, `Misaligned`, `Damaged`.
    pub fn read_page(&self, addr: u64, into: &mut Page) -> Result<bool, StoreError> {
        if self.transaction.open {
            return Err(StoreError::InTransaction);
        }
        if !is_page(addr) {
            return Err(StoreError::Misaligned);
        }
        let Some(frame) = self.frame_of(addr) else {
            into.fill(0);
            return Ok(false);
        };
        self.region.read(frame, into);
        let logged =
            self.chunks.find(addr).is_some_and(|index| is_set(&self.chunks.state(index).logged, page_of(addr)));
        if logged {
            let mut entries = Entries::of_records(self.superblock.areas.ring, self.ring_used);
            while let Some(entry) = entries.next(&self.region)? {
                match entry {
                    Entry::Page { addr: of, at, .. } if of == addr => self.region.read(at, into),
                    Entry::Lines { addr: of, mask, at, .. } if of == addr => each_line(mask, at, |from, line| {
                        let line = line as usize;
                        self.region.read(from, &mut into[line..line + 64]);
                    }),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// Copies an object's bytes, as far as they fit, and returns its length; None if there is no such object.
    /// Between `begin` and `commit` this is the object as it will be.
    pub fn object(&self, kind: u16, key: u64, into: &mut [u8]) -> Option<usize> {
        let object = self.objects.find(kind, key)?;
        let len = object.len as usize;
        let fits = len.min(into.len());
        self.region.read(object.at, &mut into[..fits]);
        Some(len)
    }

    /// Calls `f(kind, key, length)` for every object, in the order of kind and key.
    pub fn objects(&self, f: &mut dyn FnMut(u16, u64, usize)) {
        for object in self.objects.all() {
            f(object.kind, object.key, object.len as usize);
        }
    }
}

/// Joins pieces that continue each other in memory and in the region.
struct Joined<'f> {
    f: &'f mut dyn FnMut(u64, u64, u64),
    piece: (u64, u64, u64),
}

impl<'f> Joined<'f> {
    fn new(f: &'f mut dyn FnMut(u64, u64, u64)) -> Joined<'f> {
        Joined { f, piece: (0, 0, 0) }
    }

    fn add(&mut self, addr: u64, off: u64, len: u64) {
        let (last, at, had) = self.piece;
        if had > 0 && last + had == addr && at + had == off {
            self.piece.2 += len;
        } else {
            self.finish();
            self.piece = (addr, off, len);
        }
    }

    fn finish(&mut self) {
        let (addr, off, len) = self.piece;
        if len > 0 {
            (self.f)(addr, off, len);
        }
        self.piece = (0, 0, 0);
    }
}
