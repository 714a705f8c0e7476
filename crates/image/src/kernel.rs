//! Kernel state of a process that is neither memory, thread nor descriptor.

use bytemuck::{Pod, Zeroable};

/// `struct kernel_sigaction` as the program set it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SignalAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// Signals are numbered 1..=64; entry 0 is unused.
pub const SIGNALS: usize = 65;

/// One process. `PR_GET_DUMPABLE` and the like are not here: security state never comes from the store.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct KernelState {
    pub actions: [SignalAction; SIGNALS],
    /// Current end of the heap, as `brk(0)` tells.
    pub brk: u64,
    /// Lowest address of the heap.
    pub start_brk: u64,
    /// Process id the program knows.
    pub pid: u32,
    /// Process group and session as the program knows them.
    pub pgid: u32,
    pub sid: u32,
    /// The group that the program has put into the terminal's foreground last; 0 for none.
    pub foreground: u32,
    /// Where the vDSO and its data pages lie: start of vvar, start of vDSO, end.
    pub vdso: [u64; 3],
    /// `PR_SET_MM_MAP` fields that a cold resume sets again: code, data, stack, arg, env (start, end), auxv follows elsewhere.
    pub mm: [u64; 10],
    /// `ITIMER_REAL`: interval and the time it fires next (CLOCK_MONOTONIC), nanoseconds; zero if not set.
    pub itimer: [u64; 2],
    /// `ITIMER_VIRTUAL` and `ITIMER_PROF`.
    pub processor_timers: [ProcessorTimer; 2],
    /// `outlast_store::boot` where timers were last committed, and nanoseconds by which the wall clock was ahead of CLOCK_MONOTONIC and
    /// CLOCK_BOOTTIME there.
    pub boot: u64,
    pub ahead: [u64; 2],
    /// Device and inode of the root, where a call that changes it is pending; otherwise zeroes.
    pub root: [u64; 2],
    /// What `umask` returns.
    pub umask: u32,
    /// The size of the terminal's window as the program was told last, `struct winsize`, and the descriptor by which it
    /// asked; -1 if it never did.
    pub window_fd: i32,
    pub window: [u16; 4],
    /// One of [`one_shot`].
    pub one_shot: u32,
    /// 1 from the first lock or lease on that ends with a close: flock, F_OFD_SETLK, F_SETLEASE.
    pub locks: u32,
    /// What prctl sets and no clone inherits: PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER.
    pub death_signal: u32,
    pub subreaper: u32,
    /// 1: PR_SET_DUMPABLE has been set to 0. What is less than the anchor has may come from the store.
    pub undumpable: u32,
    /// Bits of [`locking`].
    pub locking: u32,
    /// Bytes that the kernel was told more than the program has set, for RLIMIT_AS and RLIMIT_DATA; 0: it has set none.
    pub limits: [u64; 2],
    /// 1 from the first pidfd on that the program opened of itself or of a thread.
    pub own_pidfds: u32,
    /// 1 once the program has made itself the owner of a file (F_SETOWN).
    pub owners: u32,
    /// One of [`before_outputs`].
    pub before_outputs: u32,
    /// What membarrier was asked to register, as its commands, which are bits.
    pub barriers: u32,
    /// One of [`interests`].
    pub interests: u32,
    /// 1: the session is one for the program alone; for the kernel it is still in the one that it was in before (`option::OWN_SESSIONS`).
    pub own_session: u32,
    /// By the numbers that the program knows.
    pub timers: [PosixTimer; TIMERS],
    pub notifications: [Notification; NOTIFICATIONS],
    pub semaphores: [Undo; UNDOS],
    pub rings: [ProgramRing; RINGS],
    /// 1: the program is to undo more than there is room for here.
    pub more_undos: u64,
}

/// How the program locks memory.
pub mod locking {
    /// It has done so, once.
    pub const USED: u32 = 1;
    /// All future mappings (MCL_FUTURE).
    pub const FUTURE: u32 = 2;
    /// These only once they are touched (MCL_ONFAULT).
    pub const ON_FAULT: u32 = 4;
}

/// Whether the program uses EPOLLONESHOT.
pub mod one_shot {
    pub const NONE: u32 = 0;
    /// All of its interests of this kind are in the commit.
    pub const KEPT: u32 = 1;
    /// There were more than are kept.
    pub const TOO_MANY: u32 = 2;
}

/// Whether the program has epolls watch anything.
pub mod interests {
    pub const NONE: u32 = 0;
    /// All of its interests are in the commit.
    pub const KEPT: u32 = 1;
    /// There were more than are kept.
    pub const TOO_MANY: u32 = 2;
}

/// What stands before what others can see. It is part of a commit, for it says what is to be undone down to that.
pub mod before_outputs {
    /// As the options say.
    pub const UNKNOWN: u32 = 0;
    /// A commit.
    pub const COMMIT: u32 = 1;
    /// Nothing.
    pub const NOTHING: u32 = 2;
}

/// An interval timer of processor time. Zeroes: it is not set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ProcessorTimer {
    pub used: u32,
    /// 1: the program has not taken the signal that it has sent.
    pub is_due: u32,
    /// Nanoseconds; 0: it fires once.
    pub interval: u64,
    /// What is left until it fires next, in nanoseconds; 0: it does not any more.
    pub left: u64,
}

impl ProcessorTimer {
    pub const NONE: ProcessorTimer = ProcessorTimer { used: 0, is_due: 0, interval: 0, left: 0 };
}

/// POSIX timers that a program may have.
pub const TIMERS: usize = 32;

/// A timer of timer_create. Zeroes: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PosixTimer {
    pub used: u32,
    pub clock: i32,
    /// `sigev_signo`, `sigev_notify`, and the thread that `SIGEV_THREAD_ID` names, as the program knows it.
    pub signal: i32,
    pub notify: i32,
    pub tid: u32,
    pub unused: u32,
    /// `sigev_value`.
    pub value: u64,
    /// Nanoseconds; 0: it fires once.
    pub interval: u64,
    /// When it fires next, on its own clock, nanoseconds; 0: it is not set.
    pub deadline: u64,
}

impl PosixTimer {
    pub const NONE: PosixTimer =
        PosixTimer { used: 0, clock: 0, signal: 0, notify: 0, tid: 0, unused: 0, value: 0, interval: 0, deadline: 0 };
}

/// Message queues where a program may be registered (mq_notify).
pub const NOTIFICATIONS: usize = 8;

/// A registration. Zeroes: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Notification {
    /// 0: it is over, for the program; the kernel may have it still, as another process's.
    pub used: u32,
    /// `sigev_notify` and `sigev_signo`.
    pub kind: u32,
    pub signal: i32,
    /// By which the program has registered.
    pub fd: i32,
    /// The queue's inode.
    pub inode: u64,
    /// `sigev_value`.
    pub value: u64,
    /// The process that is registered, as the kernel says.
    pub owner: u32,
    /// 1: that process is dead.
    pub by_dead: u32,
}

impl Notification {
    pub const NONE: Notification =
        Notification { used: 0, kind: 0, signal: 0, fd: 0, inode: 0, value: 0, owner: 0, by_dead: 0 };
}

/// Rings (io_uring) that a program may have at a time.
pub const RINGS: usize = 32;

/// A ring of the program's, which the engine serves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ProgramRing {
    /// Where the engine's notes of it lie in the program's memory; 0: there is no ring.
    pub notes: u64,
    /// The program's descriptor; -1: it is closed.
    pub fd: i32,
    pub unused: u32,
}

impl ProgramRing {
    pub const NONE: ProgramRing = ProgramRing { notes: 0, fd: 0, unused: 0 };
}

/// Semaphores of which a commit knows what the program's end is to undo (SEM_UNDO).
pub const UNDOS: usize = 32;

/// What the program has done to a semaphore and its end undoes. Zeroes: nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Undo {
    /// The set.
    pub id: u32,
    /// Which one of it.
    pub number: u16,
    /// The sum of all changes.
    pub sum: i16,
}

impl Undo {
    pub const NONE: Undo = Undo { id: 0, number: 0, sum: 0 };
}
