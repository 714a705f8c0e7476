//! Which memory traps when it is written to, and what the program may do there.

use super::undone::Part;
use crate::joined_regions::JoinedRegions;
use crate::regions::Mapped;
use crate::state::engine;
use outlast_image::region::region_flag;

/// Ranges that fit.
pub const ROOM: usize = 128;

/// Mapped alike.
#[derive(Clone, Copy)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    /// `PROT_*`, as the program wants it.
    pub prot: u32,
    /// Where the engine has it mapped, too; 0: nowhere.
    pub alias: u64,
    /// Not the group's, but of a file that goes back to the commit with the program.
    pub undone: Option<Part>,
}

impl Range {
    pub const NONE: Range = Range { start: 0, end: 0, prot: 0, alias: 0, undone: None };

    /// The part from `start` to `end`.
    pub fn part(self, start: u64, end: u64) -> Range {
        let skipped = start - self.start;
        let alias = if self.alias == 0 { 0 } else { self.alias + skipped };
        Range { start, end, alias, undone: self.undone.map(|part| part.from(skipped)), ..self }
    }
}

/// All ranges of a process, in no order.
pub struct SharedMemory {
    ranges: [Range; ROOM],
    count: usize,
    /// Something can be written to without a trap.
    pub is_open: bool,
    /// The step that is under way.
    pub step: super::step::Step,
    /// What can be written to until the next commit.
    pub opened: super::undone::Opened,
}

impl SharedMemory {
    pub const NONE: SharedMemory = SharedMemory {
        ranges: [Range::NONE; ROOM],
        count: 0,
        is_open: false,
        step: super::step::Step::NONE,
        opened: super::undone::Opened::NONE,
    };

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn clear(&mut self) {
        (self.count, self.is_open) = (0, false);
    }

    /// All ranges; none is left.
    pub fn take(&mut self) -> impl Iterator<Item = Range> {
        let (ranges, count) = (self.ranges, core::mem::take(&mut self.count));
        ranges.into_iter().take(count)
    }

    /// False: there is no room.
    pub fn put(&mut self, range: Range) -> bool {
        let fits = self.count < ROOM;
        if fits {
            self.ranges[self.count] = range;
            self.count += 1;
        }
        fits
    }

    /// The range with `address` in it.
    pub fn find(&self, address: u64) -> Option<Range> {
        self.ranges[..self.count].iter().find(|r| r.start <= address && address < r.end).copied()
    }

    /// Calls `f` with the part in `start..end` of each range.
    pub fn each(&self, start: u64, end: u64, mut f: impl FnMut(Range)) {
        for r in self.ranges[..self.count].iter().filter(|r| r.start < end && start < r.end) {
            f(r.part(r.start.max(start), r.end.min(end)));
        }
    }

    /// Behind all aliases; `none` if there is none.
    pub fn aliases_end(&self, none: u64) -> u64 {
        let ranges = self.ranges[..self.count].iter().filter(|r| r.alias != 0);
        ranges.map(|r| r.alias + (r.end - r.start)).max().unwrap_or(none)
    }

    /// The same for those that are the group's.
    pub fn each_of_group(&self, start: u64, end: u64, mut f: impl FnMut(Range)) {
        self.each(start, end, |range| {
            if range.undone.is_none() {
                f(range);
            }
        });
    }

    /// The first range that goes back with the program and has something in `start..end`.
    pub fn first_undone(&self, start: u64, end: u64) -> Option<Range> {
        let is_one = |r: &&Range| r.undone.is_some() && r.start.max(start) < r.end.min(end);
        self.ranges[..self.count].iter().filter(is_one).min_by_key(|r| r.start).copied()
    }

    /// A range of the file that is held at a place.
    pub fn of_place(&self, place: usize) -> Option<Range> {
        self.ranges[..self.count].iter().find(|r| r.undone.is_some_and(|part| part.is_of(place))).copied()
    }

    pub fn remove(&mut self, start: u64, end: u64) {
        let mut i = 0;
        while i < self.count {
            let r = self.ranges[i];
            if r.end <= start || end <= r.start {
                i += 1;
                continue;
            }
            self.count -= 1;
            self.ranges[i] = self.ranges[self.count];
            for (start, end) in [(r.start, start), (end, r.end)] {
                if start < end {
                    self.put(r.part(start, end));
                }
            }
        }
    }

    pub fn protect(&mut self, start: u64, end: u64, prot: u32) {
        let (mut parts, mut count) = ([Range::NONE; ROOM], 0);
        self.each(start, end, |r| {
            parts[count] = Range { prot, ..r };
            count += 1;
        });
        if count > 0 {
            self.remove(start, end);
            for part in &parts[..count] {
                self.put(*part);
            }
        }
    }
}

/// The program's regions as they would be if nothing trapped.
pub struct Shown<'a, F: FnMut(Mapped<'a>)> {
    pieces: JoinedRegions<'a, F>,
}

impl<'a, F: FnMut(Mapped<'a>)> Shown<'a, F> {
    pub fn new(f: F) -> Self {
        Shown { pieces: JoinedRegions::new(f) }
    }

    /// The next region, in ascending order.
    pub fn region(&mut self, m: Mapped<'a>) {
        // SAFETY: a look at a table.
        let table = unsafe { &engine().shared_memory };
        let mut at = m.region.start;
        while at < m.region.end {
            let next = |start: u64| {
                let starts = table.ranges[..table.count].iter().map(|r| r.start);
                starts.filter(|&s| s > start).min().unwrap_or(u64::MAX).min(m.region.end)
            };
            let (end, range) = match table.find(at) {
                Some(range) => (range.end.min(m.region.end), Some(range)),
                None => (next(at), None),
            };
            let mut r = m.region;
            (r.start, r.end) = (at, end);
            if r.inode != 0 {
                r.offset += at - m.region.start;
            }
            if let Some(range) = range {
                let flag = if range.undone.is_some() { region_flag::UNDONE } else { region_flag::GROUP };
                (r.prot, r.flags) = (range.prot, r.flags | flag);
            }
            let piece = Mapped { region: r, path: m.path };
            match r.flags & region_flag::UNDONE {
                0 => self.pieces.put_apart(piece),
                // Pages that can be written to in between are no regions of their own.
                _ => self.pieces.put(piece),
            }
            at = end;
        }
    }

    /// After the last region.
    pub fn end(self) {
        self.pieces.end();
    }
}
