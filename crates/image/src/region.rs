//! A mapped region of the program's address space.

use bytemuck::{Pod, Zeroable};

/// Kinds of backing.
pub mod backing {
    /// Private anonymous memory.
    pub const ANONYMOUS: u32 = 0;
    /// Private mapping of a file.
    pub const PRIVATE_FILE: u32 = 1;
    /// Shared mapping of a file.
    pub const SHARED_FILE: u32 = 2;
    /// Shared anonymous memory.
    pub const SHARED_ANONYMOUS: u32 = 3;
    /// The initial stack.
    pub const STACK: u32 = 4;
    /// Inside `start_brk..brk`.
    pub const HEAP: u32 = 5;
    /// vDSO, vvar and other mappings the kernel makes itself.
    pub const KERNEL: u32 = 6;
    /// A segment of System V shared memory; `inode` is its id.
    pub const SEGMENT: u32 = 7;
    /// The ring of a context of asynchronous input and output (io_setup).
    pub const CONTEXT: u32 = 8;
    /// Shared mapping of a file without a name that nobody but the program has.
    pub const OWN_FILE: u32 = 9;
}

/// Flags of a region.
pub mod region_flag {
    /// Grows downwards.
    pub const GROWSDOWN: u32 = 1;
    /// The file was unlinked or replaced since it was mapped, or never had a name.
    pub const DELETED: u32 = 2;
    /// Others of the tree map it, too, and the program's writes are committed one by one.
    pub const GROUP: u32 = 16;
    /// The program has the file alone, and what it writes there goes back with it.
    pub const UNDONE: u32 = 32;
}

/// Fixed part of a region; `path_len` bytes of path follow in its store object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    /// `PROT_*`.
    pub prot: u32,
    /// One of [`backing`].
    pub backing: u32,
    /// Bits of [`region_flag`].
    pub flags: u32,
    pub path_len: u32,
    pub offset: u64,
    pub inode: u64,
    pub dev: u64,
}
