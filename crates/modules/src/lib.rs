//! Modules that are compiled in. Each uses pins only, so that it runs wherever these exist.

// A component that is made of one has a core of its own.
#[cfg(unix)]
mod checkpoint;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod generations;
pub mod hang;
#[cfg(unix)]
mod leaks;
#[cfg(unix)]
mod oshang;
#[cfg(unix)]
mod peers;
#[cfg(unix)]
mod reboot;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod storm;
#[cfg(unix)]
mod visible;

#[cfg(unix)]
use outlast_core::{Budget, Manifest};

/// Those that protect a program, in the order in which they are loaded.
#[cfg(unix)]
pub fn all() -> [Manifest; 8] {
    [
        crash::MANIFEST,
        visible::MANIFEST,
        server::MANIFEST,
        checkpoint::MANIFEST,
        generations::MANIFEST,
        hang::MANIFEST,
        storm::MANIFEST,
        leaks::MANIFEST,
    ]
}

/// Those that protect the machine.
#[cfg(unix)]
pub fn of_machine() -> [Manifest; 1] {
    [oshang::MANIFEST]
}

/// Those that decide about components.
#[cfg(unix)]
pub fn of_components() -> [Manifest; 1] {
    [reboot::MANIFEST]
}

/// The one that watches an instance of a component.
#[cfg(unix)]
pub fn of_instances() -> [Manifest; 1] {
    [hang::OF_COMPONENTS]
}

/// Those that do what other nodes ask for.
#[cfg(unix)]
pub fn for_other_nodes() -> [Manifest; 1] {
    [peers::MANIFEST]
}

/// None of these needs more than an instant and a few hundred bytes.
#[cfg(unix)]
const BUDGET: Budget = Budget { time: std::time::Duration::from_secs(2), memory: 1 << 20 };
