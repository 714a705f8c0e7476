//! Modules that are compiled in. Each uses pins only, so that it runs wherever these exist.

mod checkpoint;
mod crash;
mod hang;
mod leaks;
mod storm;
mod visible;

use outlast_core::{Budget, Manifest};

/// All of them, in the order in which they are loaded.
pub fn all() -> [Manifest; 6] {
    [crash::MANIFEST, visible::MANIFEST, checkpoint::MANIFEST, hang::MANIFEST, storm::MANIFEST, leaks::MANIFEST]
}

/// None of these needs more than an instant and a few hundred bytes.
const BUDGET: Budget = Budget { time: std::time::Duration::from_secs(2), memory: 1 << 20 };
