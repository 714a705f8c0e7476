//! The code sections that threads of a program are in, as the program writes them down itself: `crates/api` has the same layout. It is memory
//! of the program's, which a commit has and a rollback puts back like any other; who reads it from outside believes none of it.

use bytemuck::{Pod, Zeroable};

/// One for each of the program's files that were linked by themselves, each with slots for its own threads.
pub const REGISTRIES: usize = 8;
/// Threads in a registry.
pub const SLOTS: usize = 128;
/// Sections that a thread is in at once, one in the other.
pub const DEPTH: usize = 32;
/// Sections that it has left last.
pub const LEFT: usize = 16;
/// First word of a registry, with the version of what follows.
pub const MAGIC: u64 = u64::from_le_bytes(*b"OUTLsec1");
/// In a section: what the rest is the address of is a function. Otherwise it is a [`Named`].
pub const FUNCTION: u64 = 1 << 63;

/// What stands before the slots.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Registry {
    pub magic: u64,
    /// As many slots have ever been taken.
    pub used: u64,
    pub reserved: [u64; 6],
}

/// A thread's. It alone writes here, and signals of its own may interrupt it at that.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Slot {
    /// What the program calls the thread; 0: nobody's.
    pub owner: u64,
    /// Sections it has entered so far.
    pub runs: u64,
    /// As many of `frames` count, the last one being the innermost.
    pub len: u64,
    /// Sections it has left so far; the last one was put down at this place, before it was counted, modulo [`LEFT`].
    pub exits: u64,
    pub reserved: [u64; 4],
    pub frames: [Frame; DEPTH],
    pub left: [Left; LEFT],
}

/// A section that a thread is in.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Frame {
    pub section: u64,
    /// The thread's how manieth; 0: it is just leaving.
    pub run: u64,
    /// Below this address its stack is while it is there.
    pub stack: u64,
    /// Where the function returns to; 0: it is none.
    pub caller: u64,
}

/// A section that it has left.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Left {
    pub section: u64,
    pub run: u64,
    pub exit: u64,
}

/// A section that has a name.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Named {
    /// Address of its characters.
    pub name: u64,
    /// How many; 0: up to a zero.
    pub len: u64,
}
