//! Where in the address space stubs may lie.

use outlast_image::layout::{PAGE, USER_END};

/// Bytes of a stub area: what is mapped at a time.
pub const AREA_LEN: u64 = 64 << 10;
/// No mapping below this: a null pointer must still fault, `vm.mmap_min_addr` included.
const LOWEST: u64 = AREA_LEN;
/// Distance kept from the last byte that a 4-byte displacement reaches, for instructions that begin or end elsewhere.
const MARGIN: u64 = PAGE;
/// What a 4-byte displacement reaches.
const FAR: u64 = 1 << 31;

/// The addresses in which the whole of an area must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    pub start: u64,
    pub end: u64,
}

impl Reach {
    /// What can be reached from `address`, and can reach it.
    pub(crate) fn around(address: u64) -> Reach {
        Reach {
            start: address.saturating_sub(FAR - MARGIN).max(LOWEST),
            end: address.saturating_add(FAR - MARGIN).min(USER_END),
        }
    }

    pub(crate) fn and(self, other: Reach) -> Reach {
        Reach { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// Whether the `len` bytes from `address` on lie within.
    pub fn contains(&self, address: u64, len: u64) -> bool {
        self.start <= address && address.checked_add(len).is_some_and(|end| end <= self.end)
    }

    /// The free place of [`AREA_LEN`] bytes, aligned to pages, nearest to `address`, for `mmap` with `MAP_FIXED_NOREPLACE`.
    ///
    /// `mapped`: start and end of every mapping, in ascending order, as in `/proc/self/maps`. A page is kept free on both
    /// sides, so that an area never merges with what grows towards it. `None`: nothing is free; remember the refusal.
    pub fn nearest_gap(&self, address: u64, mapped: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
        let align = |address: u64| address.div_ceil(PAGE) * PAGE;
        let distance = |place: u64| address.abs_diff(place + AREA_LEN / 2);
        let mut best = None::<u64>;
        let mut free_from = 0;
        for (start, end) in mapped.chain([(USER_END, USER_END)]) {
            let first = align((free_from + PAGE).max(self.start));
            let last = start.saturating_sub(PAGE).min(self.end).saturating_sub(AREA_LEN) / PAGE * PAGE;
            if first <= last {
                let place = (address.saturating_sub(AREA_LEN / 2) / PAGE * PAGE).clamp(first, last);
                if best.is_none_or(|other| distance(place) < distance(other)) {
                    best = Some(place);
                }
            }
            free_from = free_from.max(end);
        }
        best
    }
}
