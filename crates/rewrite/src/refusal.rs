//! Why a site is not rewritten.

use core::fmt;

/// What stands against rewriting the bytes on one side of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The instruction cannot be decoded.
    Undecodable,
    /// An instruction is not on the list of those that may be moved.
    Unmovable,
    /// The code ends before there is room for a jump, and what follows is not padding.
    NoRoom,
    /// Something may branch into the bytes.
    Branch,
    /// A marked entry point lies in the bytes.
    Entry,
    /// Where the instructions before the site start is not certain.
    Uncertain,
    /// The instructions are too long for a stub.
    TooLong,
    /// The bytes touch a range that must not change, or another patch.
    Forbidden,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Undecodable => "an instruction cannot be decoded",
            Obstacle::Unmovable => "an instruction cannot be moved",
            Obstacle::NoRoom => "the code ends too early",
            Obstacle::Branch => "something may branch into the bytes",
            Obstacle::Entry => "an entry point lies in the bytes",
            Obstacle::Uncertain => "the start of the instruction is uncertain",
            Obstacle::TooLong => "the instructions are too long",
            Obstacle::Forbidden => "the bytes must not change",
        })
    }
}

/// Why a site is left to Syscall User Dispatch. All but [`Refusal::OutOfReach`], [`Refusal::Full`] and
/// [`Refusal::Overlaps`] hold until the code changes: remember them in [`crate::RefusedSites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no `syscall` instruction at the address.
    NotSyscall,
    /// The site lies in a range that must not change (vDSO, restartable sequence, the engine's own code).
    Forbidden,
    /// The site is a signal return, which unwinders recognise by its bytes.
    SignalReturn,
    /// The code after the call uses flags that were set before it.
    FlagsLive,
    /// No bytes around the site can make room for a jump.
    NoRoom { before: Obstacle, after: Obstacle },
    /// The stub is too far from the site or from what its instructions refer to: make an area within `Plan::reach`.
    OutOfReach,
    /// No stub is free within reach: make an area within `Plan::reach`.
    Full,
    /// Another patch made since the plan touches the same bytes: plan again.
    Overlaps,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refusal::NotSyscall => f.write_str("not a system call instruction"),
            Refusal::Forbidden => f.write_str("the site lies in code that must not change"),
            Refusal::SignalReturn => f.write_str("unwinders recognise this signal return by its bytes"),
            Refusal::FlagsLive => f.write_str("the code after the call uses flags from before it"),
            Refusal::NoRoom { before, after } => {
                write!(f, "no room for a jump: before the call {before}; after it {after}")
            }
            Refusal::OutOfReach => f.write_str("the stub is out of reach: make an area nearer to the site"),
            Refusal::Full => f.write_str("no stub within reach is free: make another area"),
            Refusal::Overlaps => f.write_str("another patch touches the same bytes: plan again"),
        }
    }
}

impl core::error::Error for Refusal {}
