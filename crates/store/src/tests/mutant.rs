//! Switches a check off, so that a test can see that the others notice.

use std::cell::Cell;

/// What is switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mutant {
    /// Recovery takes records of any epoch.
    pub ignore_epoch: bool,
    /// Recovery takes records whatever their checksum.
    pub ignore_crc: bool,
    /// Every checksum is 0: whoever wrote the store knew how to make them right.
    pub blank_crc: bool,
}

std::thread_local! {
    static CURRENT: Cell<Mutant> = const { Cell::new(Mutant { ignore_epoch: false, ignore_crc: false, blank_crc: false }) };
}

/// What stores opened by this thread ignore.
pub fn current() -> Mutant {
    CURRENT.get()
}

/// Does something with checks switched off.
pub fn with<T>(mutant: Mutant, f: impl FnOnce() -> T) -> T {
    CURRENT.set(mutant);
    let done = f();
    CURRENT.set(Mutant::default());
    done
}
