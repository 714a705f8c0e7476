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

/// Kernel objects without a name that a cold resume makes anew. What follows the descriptor in its store object is in brackets.
pub mod unnamed_kind {
    /// None of them, or one of which nothing is known.
    pub const NONE: u32 = 0;
    /// An eventfd [[`Unnamed`](super::Unnamed)].
    pub const COUNTER: u32 = 1;
    /// A timerfd [[`Timer`](super::Timer)].
    pub const TIMER: u32 = 2;
    /// A signalfd [[`Unnamed`](super::Unnamed)].
    pub const SIGNALS: u32 = 3;
    /// An epoll; its interests are objects of their own.
    pub const EPOLL: u32 = 4;
    /// An end of a pipe that the program made itself [[`Unnamed`](super::Unnamed)].
    pub const PIPE: u32 = 5;
    /// A socket of a pair that the program made itself [[`Unnamed`](super::Unnamed)].
    pub const PAIR: u32 = 6;
    /// An end of a pipe that has a name, which follows: it is opened again.
    pub const NAMED_PIPE: u32 = 7;
    /// An inotify [[`Unnamed`](super::Unnamed)]; its watches are objects of their own.
    pub const WATCHES: u32 = 8;
}

/// What is to be known of most of these objects.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Unnamed {
    /// Of an eventfd 1 if reads take one at a time (EFD_SEMAPHORE); of a signalfd its set; of a pipe the bytes that it holds; of a
    /// socket its type; of an inotify the number that it gave last, and [`LOST_WATCH`].
    pub what: u64,
}

/// Not all watches of an inotify are known.
pub const LOST_WATCH: u64 = 1 << 32;

/// A timerfd.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Timer {
    pub clock: u32,
    /// TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET.
    pub flags: u32,
    /// When it expires for the first time that the program has not been told of, by its own clock, nanoseconds; 0: it is not set.
    pub deadline: u64,
    /// Nanoseconds; 0: it expires once.
    pub interval: u64,
    /// The same as `deadline` by CLOCK_REALTIME, for a machine that has been rebooted.
    pub deadline_real: u64,
    /// What tells this boot of the machine from others.
    pub boot: u64,
}

/// What an object without a name held at the commit; the bytes follow. Of an eventfd there is the count.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Held {
    /// Bits of [`held`].
    pub flags: u32,
    /// 0: the bytes are a stream; else so many messages, each after its length of four bytes.
    pub messages: u32,
}

/// See [`Held::flags`].
pub mod held {
    /// Nobody has the other end any more.
    pub const ENDED: u32 = 1;
    /// Whoever has the other end writes no more.
    pub const SHUT: u32 = 2;
    /// There was more than is kept, or it could not be looked at.
    pub const LOST: u32 = 4;
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
    /// One of [`unnamed_kind`].
    pub unnamed: u32,
    /// Numbers of the open file and of that at its other end, as long as the program lives: the same file has the same number.
    pub file: u32,
    pub peer: u32,
    pub unused: u32,
}
