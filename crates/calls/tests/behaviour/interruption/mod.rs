//! Calls that wait, interrupted by a handler installed with SA_RESTART: what the row says comes true.

mod cases;
mod waiting;

use crate::alarm::start;
use crate::arena::Arena;
use crate::child::in_child;
use crate::raw::call;
use outlast_calls::{interrupted, row, Interrupted, TABLE};
use std::collections::BTreeSet;

const EINTR: i64 = -4;
const EAGAIN: i64 = -11;
const ENOSYS: i64 = -38;
const EPERM: i64 = -1;

/// Which case of the row's rule a test is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    /// No time-out.
    Plain,
    /// A time-out on the socket, or as an argument.
    Timeout,
}

/// Makes the call under alarms. `setup` gives its arguments and, with [`Arena::feed`], what ends a call that is issued again.
fn interrupt(name: &str, case: Case, setup: impl Fn(&mut Arena) -> Vec<u64>) {
    let mut arena = Arena::new(0);
    let given = setup(&mut arena);
    let (nr, args) = call(name, &given);
    let row = row(nr).expect("the row");
    assert!(row.waits, "{name} waits");
    let restarts = match interrupted(nr, &args) {
        Interrupted::Never => panic!("{name} is never interrupted"),
        Interrupted::Restart | Interrupted::Always => true,
        Interrupted::RestartUnlessTimeout | Interrupted::Special => case == Case::Plain,
        Interrupted::Eintr => false,
    };
    if !restarts {
        arena.feed = None;
    }
    let result = in_child(&arena, nr, args, || start(&arena));
    println!("{name}: {result}");
    if result == ENOSYS || result == EPERM {
        println!("skipped: not supported here");
        return;
    }
    if restarts {
        assert!(result >= 0 || result == EAGAIN, "{name} is issued again until it is fed, but gave error {}", -result);
    } else {
        assert_eq!(result, EINTR, "{name}");
    }
}

/// Calls that wait but are not made to wait here, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("ioctl", "waits in the driver that the request names"),
    ("pread64", "does not wait on what has an offset, but for drivers"),
    ("pwrite64", "does not wait on what has an offset, but for drivers"),
    ("preadv", "does not wait on what has an offset, but for drivers"),
    ("pwritev", "does not wait on what has an offset, but for drivers"),
    ("open_by_handle_at", "as open; needs a privilege"),
    ("syslog", "waits for the kernel to say something, and takes it from its reader"),
    ("request_key", "waits for a program of the administrator's"),
    ("keyctl", "waits for a program of the administrator's"),
    ("ptrace", "waits only for a tracee that is being killed"),
    ("restart_syscall", "is made by the kernel"),
];

#[test]
fn every_call_that_waits_is_interrupted() {
    let made: BTreeSet<&str> = cases::ROWS.iter().copied().collect();
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|&(name, _)| name).collect();
    for row in TABLE.iter().flatten().filter(|row| row.waits) {
        assert_ne!(made.contains(row.name), excused.contains(row.name), "{}: made or excused, exactly one", row.name);
    }
    println!("{} calls interrupted, {} excused", made.len(), excused.len());
}
