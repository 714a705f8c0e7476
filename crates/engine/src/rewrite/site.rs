//! Which sites are hot.

/// Traps after which a site is worth rewriting: planning and patching it costs about as much.
const HOT: u32 = 8;
const SLOTS: usize = 256;

#[derive(Clone, Copy)]
struct Slot {
    site: u64,
    traps: u32,
}

/// Counts traps by site. Direct-mapped: a collision only makes a site wait longer.
pub struct Traps {
    slots: [Slot; SLOTS],
}

impl Traps {
    pub const fn new() -> Self {
        Traps { slots: [Slot { site: 0, traps: 0 }; SLOTS] }
    }

    /// Counts one more trap of `site`. Has it become hot?
    pub fn is_hot(&mut self, site: u64) -> bool {
        let slot = &mut self.slots[(site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % SLOTS];
        if slot.site != site {
            *slot = Slot { site, traps: 0 };
        }
        slot.traps = slot.traps.saturating_add(1);
        slot.traps >= HOT
    }
}
