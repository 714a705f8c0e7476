//! Rows of class Absent answer ENOSYS on the running kernel, and write nothing.

use crate::arena::Arena;
use crate::child::call_in_child;
use outlast_calls::{Class, TABLE};

#[test]
fn absent_calls_are_not_in_the_kernel() {
    for row in TABLE.iter().flatten().filter(|row| row.class == Class::Absent) {
        let arena = Arena::new(0xa5);
        let before = arena.snapshot();
        let args = [0, 1, 2, 3, 4, 5].map(|arg| arena.slot(arg));
        let result = call_in_child(&arena, u64::from(row.nr), args);
        // A seccomp profile may answer EPERM first.
        assert!([-38, -1].contains(&result), "{}: {result}", row.name);
        assert!(before == arena.snapshot(), "{} wrote something", row.name);
    }
}
