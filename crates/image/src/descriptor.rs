//! An open descriptor of the program.

use bytemuck::{Pod, Zeroable};

/// What a descriptor refers to.
pub mod descriptor_kind {
    pub const UNKNOWN: u32 = 0;
    pub const REGULAR: u32 = 1;
    pub const DIRECTORY: u32 = 2;
    pub const CHARACTER: u32 = 3;
    pub const TERMINAL: u32 = 4;
    pub const BLOCK: u32 = 5;
    pub const PIPE: u32 = 6;
    pub const SOCKET: u32 = 7;
    /// eventfd, epoll, timerfd and other anonymous inodes.
    pub const ANONYMOUS: u32 = 8;
}

/// Whom the kernel sends a signal when something can be read or written.
pub mod owner_kind {
    /// Nobody, or none of the program.
    pub const OTHER: u32 = 0;
    pub const PROCESS: u32 = 1;
    pub const THREAD: u32 = 2;
    /// The group that the program is in.
    pub const GROUP: u32 = 3;
}

/// Fixed part of a descriptor; `path_len` bytes of path follow in its store object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Descriptor {
    pub fd: u32,
    /// One of [`descriptor_kind`].
    pub kind: u32,
    /// `O_*` status and access flags.
    pub flags: u32,
    /// `FD_CLOEXEC` is 1.
    pub fd_flags: u32,
    /// Offset at the commit, for files that have one.
    pub offset: u64,
    pub inode: u64,
    pub dev: u64,
    pub path_len: u32,
    /// Of a pidfd: the process, if it is the program, or the thread of the program that it stands for, by the number that the program
    /// knows; else 0.
    pub own: u32,
    /// Whom the kernel tells of readiness: one of [`owner_kind`], and the number that the program knows.
    pub owner_kind: u32,
    pub owner: u32,
}
