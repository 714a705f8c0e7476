//! A file without a name that nobody but the program has.

use bytemuck::{Pod, Zeroable};

/// What a commit says of it; how the kernel calls it follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OwnFile {
    /// Tells it from all others of the program.
    pub serial: u64,
    /// Device, major number in the upper half, and inode: those of the file when the commit was made.
    pub device: u64,
    pub inode: u64,
    /// Bytes.
    pub size: u64,
}
