//! Which sites are hot.

/// Traps after which a site is worth rewriting: planning and patching it costs about as much.
const HOT: u32 = 8;
/// Sites that share a place by chance, and do not push each other out.
const WAYS: usize = 4;
const SETS: usize = 64;

#[derive(Clone, Copy)]
struct Slot {
    site: u64,
    traps: u32,
}

/// Counts traps by site. Two sites that are called in turn must not share a place: neither would ever be hot.
pub struct Traps {
    sets: [[Slot; WAYS]; SETS],
}

impl Traps {
    pub const fn new() -> Self {
        Traps { sets: [[Slot { site: 0, traps: 0 }; WAYS]; SETS] }
    }

    /// Counts one more trap of `site`. Has it become hot?
    pub fn is_hot(&mut self, site: u64) -> bool {
        let set = &mut self.sets[(site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SETS];
        let known = set.iter().position(|slot| slot.site == site);
        // Who has trapped least has least to lose.
        let place = known.or_else(|| (0..WAYS).min_by_key(|&n| set[n].traps)).unwrap_or(0);
        let slot = &mut set[place];
        if known.is_none() {
            *slot = Slot { site, traps: 0 };
        }
        slot.traps = slot.traps.saturating_add(1);
        slot.traps >= HOT
    }
}
