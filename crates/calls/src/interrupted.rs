//! What a signal leaves of a call that it interrupts.

/// What becomes of an interrupted call when the handler was installed with SA_RESTART (without it, all but `Never` give
/// EINTR). See signal(7), "Interruption of system calls and library functions by signal handlers".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interrupted {
    /// No handler interrupts it; it runs to its end.
    Never = 0,
    /// Issued again when the handler returns.
    Restart = 1,
    /// Issued again, but EINTR on a socket with SO_RCVTIMEO (calls that receive) or SO_SNDTIMEO (calls that send,
    /// connect).
    RestartUnlessTimeout = 2,
    /// EINTR, SA_RESTART or not.
    Eintr = 3,
    /// Depends on an argument; the row's note says how.
    Special = 4,
}
