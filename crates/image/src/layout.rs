//! Where the engine, the session and the store lie in the address space of a protected process.
//!
//! The addresses are fixed: the engine is linked at [`ENGINE_BASE`], and the supervisor refuses
//! (a degradation, never an abort) when the program already occupies the range.

/// Which layout engine and supervisor speak with each other: of what is here, of the session and of the store. It changes with anything
/// in this crate, or in the store's format, that one of another version would understand otherwise, and with the options of `supervise`.
pub const VERSION: u32 = 19;

/// Bytes a page.
pub const PAGE: u64 = 4096;

/// Load address of the engine's text; its data and bss follow.
pub const ENGINE_BASE: u64 = 0x2000_0000_0000;
/// Where a thread of a program that is attached to begins, all signals blocked.
pub const THREAD_ENTRY: u64 = ENGINE_BASE + 128;
/// Room for the engine's text, data, bss and stacks.
pub const ENGINE_ROOM: u64 = 16 << 20;

/// The session file: volatile memory of one run on one kernel (control page, io_uring, bounce buffer).
pub const SESSION_BASE: u64 = ENGINE_BASE + ENGINE_ROOM;
/// Length of the session file.
pub const SESSION_LEN: u64 = 8 << 20;

/// Working tables of the engine (page index, shadow copies), anonymous memory of its own.
pub const SCRATCH_BASE: u64 = SESSION_BASE + SESSION_LEN;
/// Room for the working tables.
pub const SCRATCH_ROOM: u64 = (1 << 30) - ENGINE_ROOM - SESSION_LEN;

/// The store file, mapped shared.
pub const STORE_BASE: u64 = ENGINE_BASE + (1 << 30);
/// From this address on the store keeps the pages of the threads' contexts ([`crate::context::ThreadContext`]), one a place,
/// which are none of the program's memory.
pub const CONTEXT_PAGE: u64 = STORE_BASE;
/// Length of the store file: sparse, so only what is written takes room.
pub const STORE_LEN: u64 = 1 << 38;

/// Control blocks and stacks of the engine for the program's threads but the first, mapped when there are any: anonymous.
pub const THREADS_BASE: u64 = STORE_BASE + STORE_LEN;
/// Places for threads, the first one's included.
pub const THREADS: usize = 1024;
/// Bytes of a place.
pub const THREAD_LEN: u64 = 512 << 10;

/// Where the anchor, and a restore, map files that the program maps, lest they vanish.
pub const KEPT_BASE: u64 = THREADS_BASE + THREADS as u64 * THREAD_LEN;
/// Room for them.
pub const KEPT_LEN: u64 = 1 << 38;

/// The session of a child that is about to be made, mapped by its parent until it can be recovered.
pub const CHILD_BASE: u64 = KEPT_BASE + KEPT_LEN;

/// What processes that share memory know of each other's writes.
pub const GROUP_BASE: u64 = CHILD_BASE + SESSION_LEN;
/// Bytes of that.
pub const GROUP_LEN: u64 = 20 * PAGE;

/// Where the kernel puts what became of calls, where there is no io_uring.
pub const COMPLETIONS_BASE: u64 = GROUP_BASE + GROUP_LEN;
/// Room for that: what a pipe may hold that refers to it.
pub const COMPLETIONS_LEN: u64 = 1 << 20;

/// Where memory that is shared with other processes is mapped once more, for the engine to write to.
pub const ALIAS_BASE: u64 = (COMPLETIONS_BASE + COMPLETIONS_LEN).next_multiple_of(1 << 21);
/// Room for that.
pub const ALIAS_LEN: u64 = 1 << 42;

/// End of everything that is the engine's.
pub const ENGINE_END: u64 = ALIAS_BASE + ALIAS_LEN;
/// End of user addresses with four-level page tables.
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Offsets in the session file.
pub mod session {
    use super::PAGE;
    /// [`crate::control::Control`].
    pub const CONTROL: u64 = 0;
    /// [`crate::inject::InjectArgs`], written by the supervisor before the engine starts.
    pub const INJECT: u64 = PAGE;
    /// [`crate::pending::PendingOp`] slots.
    pub const PENDING: u64 = 2 * PAGE;
    /// The note of the system call under way, where there is no ring: one page.
    pub const NOTE: u64 = 3 * PAGE;
    /// [`crate::successor::Successor`].
    pub const SUCCESSOR: u64 = 4 * PAGE;
    /// [`crate::notifiers::Notifiers`].
    pub const NOTIFIERS: u64 = 5 * PAGE;
    /// Places for io_uring rings: each a page of rings, then a page of submission entries. A ring of a dead process
    /// may still be written to by the kernel, so every new ring takes the next place.
    pub const RINGS: u64 = 2 << 20;
    /// How many places there are; they are used in turn.
    pub const RING_PLACES: u32 = 128;
    /// Bytes of a place.
    pub const RING_PLACE_LEN: u64 = 2 * PAGE;
    /// The signal that each thread has in hand: a place for each.
    pub const IN_HAND: u64 = RINGS + RING_PLACES as u64 * RING_PLACE_LEN;
    /// Bytes of a place.
    pub const IN_HAND_LEN: u64 = 256;
    /// Ring of events for the log.
    pub const EVENTS: u64 = 8 * PAGE;
    /// Length of the ring of events in bytes.
    pub const EVENTS_LEN: u64 = 8 * PAGE;
    /// [`crate::filters::HandedOver`]; has room only once it is used.
    pub const FILTERS: u64 = EVENTS + EVENTS_LEN;
    /// Length of that in bytes.
    pub const FILTERS_LEN: u64 = 17 * PAGE;
    /// Copies of arguments that the kernel reads or writes for a ring operation.
    pub const BOUNCE: u64 = 256 << 10;
    /// Length of the bounce buffer in bytes.
    pub const BOUNCE_LEN: u64 = 1 << 20;
    const _: () = assert!(super::THREADS * size_of::<crate::inject::ThreadArgs>() <= BOUNCE_LEN as usize);
    /// Files that the program maps, as the anchor is told.
    pub const MAPPED_FILES: u64 = BOUNCE + BOUNCE_LEN;
    /// Length of that list in bytes.
    pub const MAPPED_FILES_LEN: u64 = 512 << 10;
    /// The program's children: [`crate::children::CHILDREN`] times [`crate::children::Child`]. Has room only once it is used.
    pub const CHILDREN: u64 = IN_HAND + super::THREADS as u64 * IN_HAND_LEN;
    const _: () = assert!(CHILDREN + crate::children::LEN <= HISTORY);
    /// [`crate::history::History`], a page, then its records. Has room only with [`crate::inject::option::HISTORY`].
    pub const HISTORY: u64 = 4 << 20;
    const _: () = assert!(HISTORY + PAGE + crate::history::LEN <= super::SESSION_LEN);
}

/// Descriptors of the engine sit just below this number, or below the soft limit if that is lower.
pub const ENGINE_FD_CEILING: i32 = 1024;
/// How many descriptors the engine keeps for itself, one after the other.
pub const ENGINE_FDS: i32 = 29;
/// How many of them hold files that the program maps and has no descriptor of.
pub const HELD_FILES: usize = 12;
/// How many numbers above them it may use to hide what the program closed until the next commit.
pub const HIDING_FDS: i32 = 52;

/// Those of the engine's descriptors that the supervisor provides, counted from the first.
pub mod own_fd {
    /// The session's file.
    pub const SESSION: i32 = 0;
    /// The store's file.
    pub const STORE: i32 = 1;
    /// The fault list, if there is one.
    pub const FAULT_LIST: i32 = 2;
    /// What keeps its BPF program attached.
    pub const FAULT_LINKS: [i32; 2] = [3, 4];
    /// Files that the program maps and has no descriptor of, [`HELD_FILES`](super::HELD_FILES) of them.
    pub const HELD: i32 = super::ENGINE_FDS - super::HELD_FILES as i32;
    /// A socket from which sessions and stores for children are received, if these are protected.
    pub const CHILDREN: i32 = 5;
    /// What the processes of a tree know of each other's writes, if children are protected: a file of [`GROUP_LEN`](super::GROUP_LEN) bytes.
    pub const GROUP: i32 = 6;
    /// A folder of processes, as /proc is, where the program's root has none.
    pub const PROC: i32 = 7;
    /// Numbers from here on the supervisor provides nothing for.
    pub const PROVIDED: i32 = 8;
}
