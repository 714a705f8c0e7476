//! Processes, and what the kernel says of itself.

use crate::arena::{Arena, Grandchild, OWN_PID};
use crate::probe::probes;

const P_ALL: u64 = 0;
const WEXITED: u64 = 4;
const KCMP_FILES: u64 = 2;

/// Two buffers in the room for inputs, and the array that names them.
fn two_buffers(arena: &mut Arena) -> u64 {
    let (one, two) = (arena.room(10), arena.room(7));
    arena.words(&[one, 10, two, 7])
}

probes! {
    getpid Success _arena => vec![];
    getppid Success _arena => vec![];
    getpgrp Success _arena => vec![];
    getpgid Success _arena => vec![(0, 0)];
    getsid Success _arena => vec![(0, 0)];
    gettid Success _arena => vec![];
    uname Success _arena => vec![];
    sysinfo Success _arena => vec![];
    kcmp Support _arena => vec![(0, OWN_PID), (1, OWN_PID), (2, KCMP_FILES), (3, 0), (4, 0)];
    getrandom Success _arena => vec![(1, 100), (2, 0)];
    wait4 Success arena => {
        arena.grandchild = Grandchild::Exits;
        vec![(0, u64::MAX), (2, 0)]
    };
    waitid Success arena => {
        arena.grandchild = Grandchild::Exits;
        vec![(0, P_ALL), (1, 0), (3, WEXITED)]
    };
    process_vm_readv Support arena => {
        let to = two_buffers(arena);
        let source = arena.text("these are 23 characters");
        let from = arena.words(&[source, 23]);
        vec![(0, OWN_PID), (1, to), (2, 2), (3, from), (4, 1), (5, 0)]
    };
    process_vm_writev Support arena => {
        let to = two_buffers(arena);
        let source = arena.text("these are 23 characters");
        let from = arena.words(&[source, 23]);
        vec![(0, OWN_PID), (1, from), (2, 1), (3, to), (4, 2), (5, 0)]
    };
}
