//! Sites that will not be rewritten: so that a failed search is not repeated at every call.

use core::ops::Range;

/// Places that an address may be kept in.
const WAYS: usize = 4;

/// A cache of `N` sites (a multiple of four). All zero is the valid, empty state. When a group is full, its oldest site is
/// forgotten: then that one is planned once more, nothing worse.
#[repr(C)]
pub struct RefusedSites<const N: usize> {
    sites: [u64; N],
}

impl<const N: usize> Default for RefusedSites<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> RefusedSites<N> {
    pub const fn new() -> Self {
        const { assert!(N >= WAYS && N % WAYS == 0) };
        RefusedSites { sites: [0; N] }
    }

    fn group(site: u64) -> Range<usize> {
        // Sites cluster: multiplying by the golden ratio spreads them.
        let spread = site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = spread as usize % (N / WAYS) * WAYS;
        first..first + WAYS
    }

    /// Remembers `site`.
    pub fn insert(&mut self, site: u64) {
        if !self.contains(site) {
            let group = &mut self.sites[Self::group(site)];
            group.rotate_right(1);
            group[0] = site;
        }
    }

    /// Whether `site` was refused.
    pub fn contains(&self, site: u64) -> bool {
        site != 0 && self.sites[Self::group(site)].contains(&site)
    }

    /// Forgets the sites in `range`: its code changed or is gone.
    pub fn drop_range(&mut self, range: Range<u64>) {
        for site in self.sites.iter_mut().filter(|site| range.contains(site)) {
            *site = 0;
        }
    }
}
