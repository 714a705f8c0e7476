//! What the supervisor tells the engine when it starts it in a new process image.

use crate::context::Registers;
use bytemuck::{Pod, Zeroable};

/// Values of [`InjectArgs::mode`].
pub mod mode {
    /// A program that was just exec'd: take commit 0, then run it.
    pub const START: u32 = 0;
    /// A fresh process that becomes the one in the store.
    pub const RESUME: u32 = 1;
    /// A program in the middle of its life: take commit 0, then have it go on.
    pub const ATTACH: u32 = 2;
}

/// Bits of [`InjectArgs::options`].
pub mod option {
    /// io_uring must not be used.
    pub const NO_RING: u64 = 1;
    /// Use write-protect + signal, even where WP_ASYNC works.
    pub const TRACKER_MPROTECT: u64 = 2;
    /// Do not rewrite call sites.
    pub const NO_REWRITE: u64 = 4;
    /// No commit before visible events: only periodic and explicit ones.
    pub const NO_VISIBLE: u64 = 8;
    /// Commit records are synced to the medium before the event they stand before.
    pub const DURABLE: u64 = 16;
    /// Restores must not map the store lazily.
    pub const EAGER: u64 = 32;
    /// There is a [`crate::fault_list::FaultList`] behind [`crate::layout::own_fd::FAULT_LIST`]. Set by the supervisor,
    /// never by a person.
    pub const FAULT_LIST: u64 = 64;
    /// Do without a fault list, even where the kernel allows one.
    pub const NO_FAULT_LIST: u64 = 128;
    /// Do without samples of the program's page faults, even where the kernel allows them.
    pub const NO_FAULT_SAMPLES: u64 = 256;
    /// After every commit, look at all of memory for what it missed; a finding ends protection. Slow: for tests.
    pub const CHECK_COMMITS: u64 = 512;
    /// The interval may grow, so that periodic commits take no more than a hundredth of the time.
    pub const SPARING: u64 = 1024;
    /// A commit stands before each output alone, also of programs that print without pause.
    pub const EACH_OUTPUT: u64 = 2048;
    /// The program's parent is not its supervisor: anchors must not become that one's children. Set by the supervisor, never by a
    /// person.
    pub const FOREIGN_PARENT: u64 = 4096;
    /// What the program sends on connections has no commit before it: the kernel's own count says what of it a recovered program is not to
    /// send again.
    pub const REPLIES: u64 = 8192;
    /// Children are protected, too: they are the supervisor's for the kernel, and the engine says whose they are.
    pub const TREE: u64 = 16384;
    /// What the program reads and sends is kept for a while: older generations are kept, too.
    pub const HISTORY: u64 = 32768;
    /// A session that the program makes is one for it alone where it has no terminal: the kernel would not give the number of a session's
    /// leader to another process while others of the session live.
    pub const OWN_SESSIONS: u64 = 65536;
    /// Those that may change while the program runs, as the interval and the attempts may: what modules wish.
    pub const WAYS: u64 = NO_VISIBLE | SPARING | EACH_OUTPUT | REPLIES;
}

/// Written by the supervisor into the session before the engine's first instruction.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct InjectArgs {
    /// One of [`mode`].
    pub mode: u32,
    /// Number of the session file's descriptor in the program: the first of the engine's own, of which
    /// [`crate::layout::own_fd`] tells. The engine writes it when it moves them, in one stroke.
    pub session_fd: i32,
    /// Bits of [`option`].
    pub options: u64,
    /// Bits of [`crate::mutant::Mutant`]; read by engines built with the feature `mutants` only.
    pub mutants: [u64; 2],
    /// Registers at the exec stop; with [`mode::ATTACH`] those with which the program goes on.
    pub regs: Registers,
    pub fs_base: u64,
    pub gs_base: u64,
    /// Commit at least this often while the program runs; 0 for never. Nanoseconds.
    pub interval_ns: u64,
    /// Attempts against the same fatal signal before the program may die of it.
    pub retries: u32,
    /// Generation of this process image: 0 at start, one more at each execve.
    pub generation: u32,
    /// Process id the program shall know; 0: its real one.
    pub pid: u32,
    /// Where the supervisor wants the process group to be; 0: as it is.
    pub pgid: u32,
    /// Bytes of the ring of the store before it is folded.
    pub ring_len: u64,
    /// With [`option::DURABLE`]: commits may reach the medium so much later; 0: they may not. Nanoseconds.
    pub lag_ns: u64,
    /// What tells this boot of the machine from others.
    pub boot: u64,
    /// The rest is for [`mode::ATTACH`]. Signals that the thread has blocked.
    pub mask: u64,
    /// The thread's restartable sequence: address, length, signature; address 0 if it has none.
    pub rseq: [u64; 3],
    /// Number of the call, with a time-out, in which the thread waits and which the kernel goes on with when asked to restart it; plus
    /// one. 0: none.
    pub waits_in: u64,
    /// How many [`ThreadArgs`] lie at [`crate::layout::session::BOUNCE`]: those of all threads but the first.
    pub threads: u64,
}

/// A thread, besides the first, of a program that is attached to. It begins at [`crate::layout::THREAD_ENTRY`] with the address of its
/// control block in RDI, that of place `n + 1` for the `n`th.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct ThreadArgs {
    /// As those of the first in [`InjectArgs`].
    pub regs: Registers,
    pub mask: u64,
    pub rseq: [u64; 3],
    pub waits_in: u64,
    pub tid: u64,
}
