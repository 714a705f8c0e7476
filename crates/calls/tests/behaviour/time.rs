//! Clocks, sleeping and timers.

use crate::arena::{bytes, Arena};
use crate::probe::probes;
use crate::raw::must;

const CLOCK_MONOTONIC: u64 = 1;
const ITIMER_REAL: u64 = 0;
/// No handler is installed: the default would end the child, so the alarm is one that never comes.
const FAR: [u64; 4] = [0, 0, 1 << 20, 0];

/// Makes the child's first timer, whose id is 0.
fn timer(arena: &mut Arena) {
    let id = arena.scratch(&[0; 4]);
    arena.first("timer_create", &[CLOCK_MONOTONIC, 0, id]);
}

fn timerfd(arena: &mut Arena) -> u64 {
    let fd = must("timerfd_create", [CLOCK_MONOTONIC, 0]);
    arena.finally(move || must("close", [fd]));
    fd
}

probes! {
    // Not interrupted: no remaining time is written.
    nanosleep Success[1] arena => vec![(0, arena.put(0, &bytes(&[0, 1000])))];
    clock_nanosleep Success[3] arena => {
        vec![(0, CLOCK_MONOTONIC), (1, 0), (2, arena.put(2, &bytes(&[0, 1000])))]
    };
    getitimer Success _arena => vec![(0, ITIMER_REAL)];
    setitimer Success arena => vec![(0, ITIMER_REAL), (1, arena.words(&FAR))];
    gettimeofday Success _arena => vec![];
    times Success _arena => vec![];
    time Success _arena => vec![];
    clock_gettime Success _arena => vec![(0, CLOCK_MONOTONIC)];
    clock_getres Success _arena => vec![(0, CLOCK_MONOTONIC)];
    timer_create Success _arena => vec![(0, CLOCK_MONOTONIC), (1, 0)];
    timer_gettime Success arena => {
        timer(arena);
        vec![(0, 0)]
    };
    timer_settime Success arena => {
        timer(arena);
        vec![(0, 0), (1, 0), (2, arena.words(&FAR))]
    };
    timer_getoverrun Success arena => {
        timer(arena);
        vec![(0, 0)]
    };
    timerfd_gettime Success arena => vec![(0, timerfd(arena))];
    timerfd_settime Success arena => {
        let fd = timerfd(arena);
        vec![(0, fd), (1, 0), (2, arena.words(&FAR))]
    };
}
