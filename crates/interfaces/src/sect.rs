//! The pin `sect`: which code sections a program's threads are in, where the program or a person says what is one. Sections between a
//! thread's calls need neither: those are the pin `pmc`'s.

use crate::named;
use crate::pmc::Spent;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "sect";

/// Operation: they are looked at at intervals, whenever the threads' counts are (`pmc`). Argument: [`Watch`].
pub const WATCH: &str = "watch-sections";

/// Event: they were looked at. Payload: `Vec<Thread>`, those that have been in one.
pub const SEEN: &str = "seen";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "which code sections threads are in",
    operations: &[named(WATCH, "the code sections of a program's threads are looked at at intervals")],
    events: &[named(SEEN, "the code sections of a program's threads were looked at")],
};

pub use crate::watch::Watch;

/// A section: one entry and several exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Section {
    /// The program has a name for it, at this address.
    Named(u64),
    /// The function at this address, which the compiler has made tell of itself.
    Function(u64),
    /// A function that a person has named, by its number among those.
    Symbol(u32),
}

impl Section {
    /// A number by which it can be told from others of its kind.
    pub fn number(self) -> u64 {
        match self {
            Self::Named(address) | Self::Function(address) => address,
            Self::Symbol(number) => number.into(),
        }
    }
}

/// A thread, and what it has to do with sections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// What the kernel calls it.
    pub thread: i32,
    /// What it has computed so far.
    pub spent: Spent,
    /// Those that it is in, outermost first.
    pub inside: Vec<Inside>,
    /// Some of those that it left last, oldest first.
    pub left: Vec<Left>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    pub section: Section,
    /// Which time it is: of two entries of a thread the later one has the greater number.
    pub run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub section: Section,
    pub run: u64,
    /// Which one; [`UNTOLD`].
    pub exit: u64,
}

/// It was left some time ago, and nothing told of it: by longjmp, say.
pub const UNTOLD: u64 = u64::MAX;
