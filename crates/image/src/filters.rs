//! Filters of system calls (seccomp) that one image of the program leaves to the one that it becomes by execve: the kernel keeps the
//! filters, and the engine in the new image has to know them.
//!
//! Untrusted like all of the session: what is wrong here makes the engine leave the program alone, or mistake what the kernel, which
//! does not look here, will refuse.

/// Instructions of all filters together, and how many filters, that are kept. The kernel allows 32,768.
pub const ROOM: usize = 8192;
pub const MOST: usize = 64;

/// Lies at [`FILTERS`](crate::layout::session::FILTERS) in the session.
#[repr(C)]
pub struct HandedOver {
    /// How many there are. With the next one asked for by reading the file, whose part here is empty for most programs.
    pub count: u64,
    /// 1: they let a process connect to the supervisor (socket and connect, AF_UNIX).
    pub may_connect: u64,
    /// Where each of them ends, in instructions.
    pub ends: [u64; MOST],
    /// `struct sock_filter`, one after the other.
    pub code: [u64; ROOM],
}

/// Bytes up to the instructions.
pub const HEAD_LEN: usize = core::mem::offset_of!(HandedOver, code);

const _: () = assert!(core::mem::size_of::<HandedOver>() as u64 <= crate::layout::session::FILTERS_LEN);
