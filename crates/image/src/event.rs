//! Phases (where the program is inside the engine) and events (what the log will say).

/// Where the program is, written by the engine for the histogram of kills. Values of [`crate::control::Control::phase`].
pub mod phase {
    pub const START: u32 = 0;
    pub const PROGRAM: u32 = 1;
    pub const GATE: u32 = 2;
    pub const COMMIT: u32 = 3;
    /// Committed, operation not yet submitted.
    pub const COMMITTED: u32 = 4;
    /// In the ring operation.
    pub const OPERATION: u32 = 5;
    /// Completed, result not yet returned.
    pub const COMPLETED: u32 = 6;
    /// Blocked in a call of the program.
    pub const BLOCKED: u32 = 7;
    pub const FOLD: u32 = 8;
    pub const RESTORE: u32 = 9;
    pub const SIGNAL: u32 = 10;
    /// Names in the order of the values.
    pub const NAMES: [&str; 11] = [
        "start",
        "program",
        "gate",
        "commit",
        "committed",
        "operation",
        "completed",
        "blocked",
        "fold",
        "restore",
        "signal",
    ];
}

/// What happened, as the engine reports it; the supervisor adds its own.
pub mod event_kind {
    /// A fatal signal was met by a rollback in place; `arg` is the signal, `arg2` the faulting address.
    pub const ROLLBACK: u32 = 1;
    /// A degradation appeared; `arg` is its bit number.
    pub const DEGRADATION: u32 = 2;
    /// Retries are used up; `arg` is the signal the program now dies of.
    pub const GIVE_UP: u32 = 3;
    /// Protection is suspended; `arg` is the degradation's bit number.
    pub const SUSPENDED: u32 = 4;
    /// The process was restored; `arg` is the sequence number resumed from.
    pub const RESTORED: u32 = 5;
    /// The engine itself failed; `arg` is a line number, `arg2` an error number.
    pub const ENGINE_ERROR: u32 = 6;
    /// A fatal signal is met by the end of the process, which is to be respawned with all its threads; `arg` is the signal,
    /// `arg2` the address of the instruction.
    pub const CRASHED: u32 = 7;
    /// The engine itself met a fault, an error like [`ENGINE_ERROR`]; `rung` is the signal, `arg` the address of the instruction,
    /// `arg2` the address that it touched.
    pub const ENGINE_FAULT: u32 = 8;
    /// A person has had the program left alone.
    pub const DETACHED: u32 = 9;
}

/// An entry of the ring of events in the session.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Event {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// One of [`event_kind`].
    pub kind: u32,
    pub rung: u32,
    pub duration_ns: u64,
    pub arg: u64,
    pub arg2: u64,
}

/// How many events the ring holds; the oldest is overwritten.
pub const EVENTS: usize = (crate::layout::session::EVENTS_LEN as usize) / core::mem::size_of::<Event>();
