//! What a signal leaves of a call that it interrupts.

use crate::command::look;

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
    /// Depends on an argument; the row's note says how, and [`interrupted`] decides.
    Special = 4,
    /// Issued again, SA_RESTART or not.
    Always = 5,
}

const WAIT4: u16 = 61;
const FLOCK: u16 = 73;
const FUTEX: u16 = 202;
const WAITID: u16 = 247;

/// Calls that do not wait when a flag is set: number, argument, flag.
const NOT_WAITING: [(u16, usize, u64); 3] = [(WAIT4, 2, WNOHANG), (WAITID, 3, WNOHANG), (FLOCK, 1, LOCK_NB)];
const WNOHANG: u64 = 1;
const LOCK_NB: u64 = 4;

/// What a signal leaves of a call with these arguments; of one that is not known, that it was interrupted. `Never`: it does
/// not wait, and must not be told of a signal that came before it.
pub fn interrupted(nr: u64, args: &[u64; 6]) -> Interrupted {
    let Some(row) = look(nr, args) else { return Interrupted::Eintr };
    let at_once = |&(call, argument, flag): &(u16, usize, u64)| call == row.nr && args[argument] & flag != 0;
    match row.nr {
        _ if !row.waits || NOT_WAITING.iter().any(at_once) => Interrupted::Never,
        FUTEX => of_futex(args[1], args[3] != 0),
        _ => row.interrupted,
    }
}

/// As the kernel's kernel/futex has it.
fn of_futex(operation: u64, has_timeout: bool) -> Interrupted {
    const COMMAND: u64 = 0x7f;
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_BITSET: u64 = 9;
    const WAIT_REQUEUE_PI: u64 = 11;
    const LOCK_PI2: u64 = 13;
    match operation & COMMAND {
        WAIT | WAIT_BITSET if has_timeout => Interrupted::Eintr,
        WAIT | WAIT_BITSET => Interrupted::Restart,
        LOCK_PI | LOCK_PI2 | WAIT_REQUEUE_PI => Interrupted::Always,
        _ => Interrupted::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wakes_others_does_not_wait() {
        let futex = |operation, timeout| interrupted(202, &[0x1000, operation, 1, timeout, 0, 0]);
        const PRIVATE: u64 = 128;
        for operation in [1, 3, 4, 5, 7, 8, 10, 12] {
            assert_eq!(futex(operation | PRIVATE, 0x2000), Interrupted::Never, "operation {operation}");
        }
        assert_eq!((futex(PRIVATE, 0), futex(9, 0)), (Interrupted::Restart, Interrupted::Restart));
        assert_eq!((futex(0, 0x2000), futex(9 | PRIVATE, 0x2000)), (Interrupted::Eintr, Interrupted::Eintr));
        assert_eq!((futex(6, 0), futex(13, 0x2000)), (Interrupted::Always, Interrupted::Always));
    }

    #[test]
    fn a_flag_or_a_command_decides_whether_a_call_waits() {
        assert_eq!(interrupted(61, &[0; 6]), Interrupted::Restart);
        assert_eq!(interrupted(61, &[!0, 0, 1, 0, 0, 0]), Interrupted::Never);
        assert_eq!(interrupted(73, &[3, 2 | 4, 0, 0, 0, 0]), Interrupted::Never);
        // F_GETFD, F_SETLKW.
        assert_eq!(interrupted(72, &[3, 1, 0, 0, 0, 0]), Interrupted::Never);
        assert_eq!(interrupted(72, &[3, 7, 0, 0, 0, 0]), Interrupted::Restart);
        assert_eq!(interrupted(99_999, &[0; 6]), Interrupted::Eintr);
    }
}
