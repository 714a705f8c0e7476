//! Executable segments of the program's files, and where branches in them lead.
//!
//! The map of a segment is made by looking through all of it, a trap's worth of time for every page or two. So it waits
//! until the segment's hot sites have trapped once for every page: a program that ends soon never pays for it, and one that
//! goes on pays at most double.

use super::Obstacle;
use crate::regions;
use crate::scratch;
use crate::user;
use outlast_image::region::{backing, Region};
use outlast_rewrite::{BranchMap, Code};

/// Segments known at a time; when there are more, all are forgotten and found again.
const MOST: usize = 64;
const PAGE: u64 = 4096;
const READ_EXECUTE: u32 = 1 | 4;

#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// Traps of hot sites before there was a map.
    traps: u64,
    /// Where its bits lie, in words from the start of the scratch memory for them; `None`: there is no map yet.
    bits: Option<usize>,
}

/// See the module.
pub struct Segments {
    list: [Segment; MOST],
    count: usize,
    /// Words of scratch memory that maps take.
    words: usize,
}

impl Segments {
    pub const fn new() -> Self {
        Segments { list: [Segment { start: 0, end: 0, traps: 0, bits: None }; MOST], count: 0, words: 0 }
    }

    /// The map of the segment that holds `site`. Errors: `NotYet` while it is not worth making, `Never` where `site` does not
    /// lie in a private, read-only executable mapping of a file (code made at run time changes; it is left alone).
    pub fn map_of(&mut self, site: u64) -> Result<BranchMap<'static>, Obstacle> {
        let known = self.list[..self.count].iter().position(|s| (s.start..s.end).contains(&site));
        let number = match known {
            Some(number) => number,
            None => self.find(site).ok_or(Obstacle::Never)?,
        };
        let segment = &mut self.list[number];
        let Segment { start, end, bits, .. } = *segment;
        if bits.is_none() {
            segment.traps += 1;
            if segment.traps < (end - start) / PAGE {
                return Err(Obstacle::NotYet);
            }
            if !is_readable(start, end) {
                return Err(Obstacle::Never);
            }
        }
        // SAFETY: the mapping is readable, was so when it was found, and what changes it drops the segment first.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, (end - start) as usize) };
        let code = Code { address: start, bytes };
        match bits {
            Some(at) => BranchMap::again(code, &scratch::branch_bits()[at..]),
            None => self.make(number, code),
        }
        .ok_or(Obstacle::Never)
    }

    fn make(&mut self, number: usize, code: Code<'static>) -> Option<BranchMap<'static>> {
        let need = BranchMap::words(code.bytes.len());
        let room = scratch::branch_bits();
        if self.words + need > room.len() {
            // The others are made again when they are needed.
            self.list[..self.count].iter_mut().for_each(|s| s.bits = None);
            self.words = 0;
        }
        let at = self.words;
        let map = BranchMap::new(code, room.get_mut(at..at + need)?)?;
        self.list[number].bits = Some(at);
        self.words += need;
        Some(map)
    }

    /// Looks the segment of `site` up in the map of the process. Neighbours of the same file are one segment.
    fn find(&mut self, site: u64) -> Option<usize> {
        let mut found = None::<Region>;
        let mut last = None::<Region>;
        regions::for_each(regions::read_maps(), (0, 0), |m| {
            let mut r = m.region;
            if r.backing != backing::PRIVATE_FILE || r.prot != READ_EXECUTE {
                return;
            }
            if let Some(l) = last {
                let follows = l.end == r.start && l.offset + (l.end - l.start) == r.offset;
                if follows && (l.inode, l.dev) == (r.inode, r.dev) {
                    (r.start, r.offset) = (l.start, l.offset);
                }
            }
            last = Some(r);
            if (r.start..r.end).contains(&site) {
                found = last;
            }
        });
        let r = found?;
        if self.count == MOST {
            (self.count, self.words) = (0, 0);
        }
        self.list[self.count] = Segment { start: r.start, end: r.end, traps: 0, bits: None };
        self.count += 1;
        Some(self.count - 1)
    }

    /// Forgets what lies in `start..end`; true if there was something.
    pub fn drop_range(&mut self, start: u64, end: u64) -> bool {
        let before = self.count;
        let mut i = 0;
        while i < self.count {
            if self.list[i].start < end && start < self.list[i].end {
                self.count -= 1;
                self.list[i] = self.list[self.count];
            } else {
                i += 1;
            }
        }
        if self.count == 0 {
            self.words = 0;
        }
        before != self.count
    }
}

/// Can every page be read? Beyond the end of a truncated file they cannot.
fn is_readable(start: u64, end: u64) -> bool {
    let mut byte = [0];
    (start..end).step_by(PAGE as usize).all(|page| user::read_bytes(page, &mut byte))
}
