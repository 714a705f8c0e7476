//! How long calls wait at most.

use crate::command::look;

/// What an argument says a time by, always from the call on: a time of a clock (TIMER_ABSTIME) passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Unit {
    /// The argument itself, an `int`; below zero: for ever.
    Milliseconds,
    /// It points to a `struct timespec`; no address: for ever.
    Timespec,
    /// It points to a `struct timeval`; no address: for ever.
    Timeval,
}

/// The argument that says how long a call waits at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    pub arg: u8,
    pub unit: Unit,
    /// The kernel writes there what is left.
    pub is_written_back: bool,
}

const NANOSLEEP: u16 = 230;
const FUTEX: u16 = 202;

/// The time-out of a call with these arguments; `None` if it has none that counts from the call on, in time that passes for all.
pub fn timeout(nr: u64, args: &[u64; 6]) -> Option<Timeout> {
    const TIMER_ABSTIME: u64 = 1;
    const FUTEX_COMMAND: u64 = 0x7f;
    const FUTEX_WAIT: u64 = 0;
    let row = look(nr, args)?;
    let timeout = row.timeout?;
    let counts = match row.nr {
        NANOSLEEP => args[1] & TIMER_ABSTIME == 0 && !is_of_processor(args[0]),
        FUTEX => args[1] & FUTEX_COMMAND == FUTEX_WAIT,
        _ => true,
    };
    counts.then_some(timeout)
}

/// Does the clock stand still while a process or thread does not run?
fn is_of_processor(clock: u64) -> bool {
    const PROCESS: i32 = 2;
    const THREAD: i32 = 3;
    // The kernel takes the low half only. Below zero are clocks of other processes and threads, and of devices.
    matches!(clock as i32, PROCESS | THREAD | ..=-1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLE;

    #[test]
    fn a_time_of_a_clock_is_none_that_counts_from_the_call_on() {
        let sleep = |clock: i32, flags| timeout(230, &[clock as u64, flags, 0x1000, 0, 0, 0]).is_some();
        assert!(sleep(0, 0) && sleep(1, 0) && sleep(7, 0));
        assert!(!sleep(1, 1) && !sleep(2, 0) && !sleep(3, 0) && !sleep(-6, 0));
        let futex = |operation| timeout(202, &[0x1000, operation, 1, 0x2000, 0, 0]).is_some();
        assert!(futex(0) && futex(128) && futex(128 | 256));
        assert!([1, 3, 6, 9, 11, 13].iter().all(|operation| !futex(*operation) && !futex(operation | 128)));
    }

    #[test]
    fn only_calls_that_wait_have_one() {
        let rows: Vec<_> = TABLE.iter().flatten().filter(|row| row.timeout.is_some()).collect();
        assert_eq!(rows.len(), 14);
        for row in rows {
            let arg = row.timeout.map(|timeout| timeout.arg);
            assert!(row.waits && row.descriptor() != arg, "{}", row.name);
        }
    }

    #[test]
    fn what_is_written_back_is_an_out_parameter() {
        for row in TABLE.iter().flatten() {
            if let Some(timeout) = row.timeout {
                let is_out = row.outs().iter().any(|out| out.arg == timeout.arg);
                assert_eq!(is_out, timeout.is_written_back, "{}", row.name);
            }
        }
    }
}
