//! The user-visible context of one thread at a commit point.

use bytemuck::{Pod, Zeroable};

/// General registers in the order of the kernel's `struct sigcontext`, so that signal frames convert by copying.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Registers {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub eflags: u64,
}

/// Bytes of vector state kept for a thread: legacy area, header and the components up to AVX-512 and PKRU.
/// A program whose enabled components need more is reported (AMX: see `Degradation::VectorState`).
pub const XSAVE_LEN: usize = 2816;

/// Offset of the vector state (standard XSAVE format) in the page of a thread's context.
pub const XSAVE_OFFSET: usize = 1024;

const _: () = assert!(core::mem::size_of::<ThreadContext>() <= XSAVE_OFFSET);
const _: () = assert!(XSAVE_OFFSET + XSAVE_LEN <= crate::layout::PAGE as usize);

/// What a commit stands before.
pub mod pending_kind {
    /// Nothing: the thread goes on at `regs.rip`.
    pub const NONE: u32 = 0;
    /// A ring operation, identified by the commit's sequence number.
    pub const RING: u32 = 1;
    /// A call that may be issued again without harm (idempotent).
    pub const REDO: u32 = 2;
    /// A write to a regular file whose offset tells what happened.
    pub const OFFSET: u32 = 3;
    /// The program is about to be replaced by execve.
    pub const EXEC: u32 = 4;
    /// A child is about to be born.
    pub const SPAWN: u32 = 5;
    /// A child is about to be reaped.
    pub const WAIT: u32 = 6;
    /// A system call by which the kernel itself notes in the session, or in other state that outlives the process,
    /// whether it happened; identified by the commit's sequence number.
    pub const NOTED: u32 = 7;
    /// An output of which the first `offset` bytes are sent; the rest is not begun. Of a thread that waits to go on with
    /// it while others commit.
    pub const PART: u32 = 8;
    /// As `REDO`, of a thread that waits within the call while others commit.
    pub const WAITING: u32 = 9;

    /// A ring operation that the thread which made the commit makes for another, which waits within the call. Identified by the
    /// commit's sequence number and `size`.
    pub const JOINED: u32 = 10;

    /// Ring operations that make what is gathered, identified by the commit's sequence number. The thread goes on at its registers.
    pub const GATHERED: u32 = 11;

    /// Does a thread have it that did not make the commit?
    pub const fn is_anothers(kind: u32) -> bool {
        matches!(kind, PART | WAITING | JOINED)
    }
}

/// A system call that the commit stands before: committed first, done afterwards, exactly once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct PendingCall {
    /// One of [`pending_kind`].
    pub kind: u32,
    /// System call number.
    pub nr: u32,
    /// Its arguments.
    pub args: [u64; 6],
    /// For [`pending_kind::PART`]: the bytes that are sent.
    pub offset: u64,
    /// For [`pending_kind::OFFSET`]: the file's size before the call. For [`pending_kind::JOINED`]: its number among the calls
    /// that are made together.
    pub size: u64,
}

/// One thread. Its page in the store holds this, and the vector state at [`XSAVE_OFFSET`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct ThreadContext {
    pub regs: Registers,
    pub fs_base: u64,
    /// The program's own GS base (the engine uses the real one).
    pub gs_base: u64,
    /// Signals the program has blocked.
    pub sigmask: u64,
    /// The program's alternate stack: `ss_sp`, `ss_flags`, `ss_size`.
    pub altstack: [u64; 3],
    /// `set_tid_address`.
    pub tid_address: u64,
    /// `set_robust_list`: head and length.
    pub robust_list: [u64; 2],
    /// `rseq`: address, length, signature; address 0 if not registered.
    pub rseq: [u64; 3],
    /// Thread id that the program knows.
    pub tid: u32,
    /// Bytes of vector state that count.
    pub xsave_len: u32,
    pub pending: PendingCall,
    /// The thread's name, as `prctl(PR_GET_NAME)` tells.
    pub comm: [u8; 16],
}
