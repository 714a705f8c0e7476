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
    /// A durable commit is acknowledged before it is on the medium.
    pub skip_sync: bool,
    /// A fold does not say of which epoch it has begun.
    pub wrong_mark: bool,
}

impl Mutant {
    /// What a mutation run asks for: the tests must fail then.
    fn from_environment() -> Mutant {
        let asked = std::env::var("OUTLAST_STORE_MUTANT").unwrap_or_default();
        Mutant {
            ignore_epoch: asked == "epoch",
            ignore_crc: asked == "record-checksum",
            skip_sync: asked == "sync",
            wrong_mark: asked == "fold-mark",
            ..Mutant::default()
        }
    }
}

std::thread_local! {
    static CURRENT: Cell<Mutant> = Cell::new(Mutant::from_environment());
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
