//! Which stubs are taken, in which areas, for which bytes of the program.

use crate::place::AREA_LEN;
use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::region::Region;
use crate::stub::{Stub, STUB_LEN};
use core::ops::Range;

/// Stubs in an area.
pub const STUBS: usize = AREA_LEN as usize / STUB_LEN;

/// Up to `N` areas of [`AREA_LEN`] bytes. All zero is a valid, empty state, so it may lie in fresh memory; about 16 KB an area.
///
/// Only bookkeeping: the caller maps the areas and writes the stubs.
#[repr(C)]
pub struct StubAreas<const N: usize> {
    areas: [Area; N],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Area {
    /// Address; 0 if there is none.
    base: u64,
    /// Stubs ever used: those behind were never given out.
    used: usize,
    slots: [Slot; STUBS],
}

/// What a stub is for.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The overwritten bytes: address in the low 48 bits, number above; 0 if the stub is free.
    overwritten: u64,
    /// Where the program goes on after the stub.
    lands: [u64; 2],
}

const ADDRESS_BITS: u32 = 48;

impl Slot {
    const FREE: Slot = Slot { overwritten: 0, lands: [0; 2] };
    /// Stands for no patch any more, and is not given out again.
    const RETIRED: Slot = Slot { overwritten: 0, lands: [u64::MAX; 2] };

    fn new(region: &Region) -> Slot {
        Slot { overwritten: region.at | u64::from(region.len) << ADDRESS_BITS, lands: region.lands() }
    }

    fn range(self) -> Range<u64> {
        let start = self.overwritten & ((1 << ADDRESS_BITS) - 1);
        start..start + (self.overwritten >> ADDRESS_BITS)
    }

    fn is_taken(self) -> bool {
        self.overwritten != 0
    }

    fn touches(self, range: &Range<u64>) -> bool {
        let own = self.range();
        self.is_taken() && own.start < range.end && range.start < own.end
    }

    /// Whether the stub comes back to the program inside `range`, after its first byte.
    fn lands_inside(self, range: &Range<u64>) -> bool {
        self.lands.iter().any(|address| range.start < *address && *address < range.end)
    }
}

impl<const N: usize> Default for StubAreas<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> StubAreas<N> {
    pub const fn new() -> Self {
        StubAreas { areas: [Area { base: 0, used: 0, slots: [Slot::FREE; STUBS] }; N] }
    }

    /// Takes the area mapped at `base`; false if `N` areas are there already.
    pub fn add(&mut self, base: u64) -> bool {
        match self.areas.iter_mut().find(|area| area.base == 0) {
            Some(area) => {
                // Slots that were never used are never looked at: nothing to clear.
                area.base = base;
                area.used = 0;
                true
            }
            None => false,
        }
    }

    /// Whether a further area could be added.
    pub fn has_room(&self) -> bool {
        self.areas.iter().any(|area| area.base == 0)
    }

    /// Gives a stub to `plan` and returns its address.
    ///
    /// Errors: [`Refusal::Overlaps`] if it conflicts with another patch, [`Refusal::Full`] if an area within
    /// `plan.reach()` has to be added first.
    pub fn place(&mut self, plan: &Plan) -> Result<u64, Refusal> {
        if self.conflicts(plan.overwritten()) {
            return Err(Refusal::Overlaps);
        }
        let within = |area: &&mut Area| area.base != 0 && plan.reach().contains(area.base, AREA_LEN);
        for area in self.areas.iter_mut().filter(within) {
            let free = area.slots[..area.used].iter().position(|slot| *slot == Slot::FREE).unwrap_or(area.used);
            if free < STUBS {
                area.slots[free] = Slot::new(plan.region());
                area.used = area.used.max(free + 1);
                return Ok(area.base + (free * STUB_LEN) as u64);
            }
        }
        Err(Refusal::Full)
    }

    /// Address of the stub that `rip` lies in, given out or not.
    pub fn stub_at(&self, rip: u64) -> Option<u64> {
        self.areas.iter().filter(|area| area.base != 0).find_map(|area| {
            let number = usize::try_from(rip.checked_sub(area.base)?).ok()? / STUB_LEN;
            (number < STUBS).then_some(area.base + (number * STUB_LEN) as u64)
        })
    }

    /// Addresses of the stubs whose patches overwrite bytes of `range`.
    pub fn touching(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.taken().filter(move |(_, slot)| slot.touches(&range)).map(|(stub, _)| stub)
    }

    /// Whether bytes of `range` must not be overwritten because of other patches: they touch it, or their stubs come back to the
    /// program inside it. (A branch that was moved into a stub is not in the code any more to be found there.) To be asked
    /// by what [`crate::plan()`] takes as `forbidden`.
    pub fn conflicts(&self, range: Range<u64>) -> bool {
        self.taken().any(|(_, slot)| slot.touches(&range) || slot.lands_inside(&range))
    }

    /// What is overwritten, patch by patch.
    pub fn overwritten(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.taken().map(|(_, slot)| slot.range())
    }

    /// How many stubs are taken.
    pub fn len(&self) -> usize {
        self.taken().count()
    }

    /// Whether no stub is taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn taken(&self) -> impl Iterator<Item = (u64, Slot)> + '_ {
        self.areas.iter().flat_map(|area| {
            let stub = |(number, slot): (usize, &Slot)| (area.base + (number * STUB_LEN) as u64, *slot);
            area.slots[..area.used].iter().enumerate().map(stub).filter(|(_, slot)| slot.is_taken())
        })
    }

    /// Forgets the patches that overwrite bytes of `range`, which is gone or whose original bytes are back (`munmap`, a new
    /// mapping over it, `dlclose`). Returns how many. Their stubs are given out again: no thread may be inside them, which
    /// holds when their code is gone.
    pub fn drop_range(&mut self, range: Range<u64>) -> usize {
        let mut dropped = 0;
        for area in &mut self.areas {
            for slot in area.slots[..area.used].iter_mut().filter(|slot| slot.touches(&range)) {
                *slot = Slot::FREE;
                dropped += 1;
            }
        }
        dropped
    }

    /// Forgets the patches that overwrite bytes of `range`, whose original bytes are back, but gives their stubs to nobody:
    /// threads may be inside them or come back to them from signal frames. Returns how many.
    pub fn retire_range(&mut self, range: Range<u64>) -> usize {
        let mut retired = 0;
        for area in &mut self.areas {
            for slot in area.slots[..area.used].iter_mut().filter(|slot| slot.touches(&range)) {
                *slot = Slot::RETIRED;
                retired += 1;
            }
        }
        retired
    }

    /// Takes up a stub that was read back from memory at `address`, where a predecessor of this table had placed it: for a
    /// patch that is in force, or (`in_force` false) for one that threads may still come back to. False if no area holds
    /// the place, if it is taken, or if the patch conflicts with another.
    pub fn adopt(&mut self, address: u64, stub: &Stub, in_force: bool) -> bool {
        let region = stub.region();
        let range = region.at..region.at + u64::from(region.len);
        if in_force && self.conflicts(range) {
            return false;
        }
        let area = self.areas.iter_mut().filter(|area| area.base != 0).find_map(|area| {
            let offset = usize::try_from(address.checked_sub(area.base)?).ok()?;
            let number = offset / STUB_LEN;
            (offset % STUB_LEN == 0 && number < STUBS).then_some((area, number))
        });
        let Some((area, number)) = area else { return false };
        if number >= area.used {
            // What lies between was never given out, or could not be read back.
            area.slots[area.used..=number].fill(Slot::FREE);
            area.used = number + 1;
        }
        if area.slots[number] != Slot::FREE {
            return false;
        }
        area.slots[number] = if in_force { Slot::new(region) } else { Slot::RETIRED };
        true
    }

    /// Addresses of the areas.
    pub fn areas(&self) -> impl Iterator<Item = u64> + '_ {
        self.areas.iter().map(|area| area.base).filter(|base| *base != 0)
    }

    /// Forgets the areas that lie in `range`, which is gone, with all their stubs.
    pub fn drop_areas(&mut self, range: Range<u64>) {
        for area in self.areas.iter_mut().filter(|area| area.base < range.end && range.start < area.base + AREA_LEN) {
            area.base = 0;
            area.used = 0;
        }
    }
}
