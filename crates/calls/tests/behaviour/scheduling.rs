//! Priorities, processors, limits and usage.

use crate::probe::probes;

const RLIMIT_NOFILE: u64 = 7;
const PRIO_PROCESS: u64 = 0;
const SCHED_FIFO: u64 = 1;

probes! {
    sched_yield Success _arena => vec![];
    getrlimit Success _arena => vec![(0, RLIMIT_NOFILE)];
    prlimit64 Success _arena => vec![(0, 0), (1, RLIMIT_NOFILE), (2, 0)];
    getrusage Success _arena => vec![(0, 0)];
    getpriority Success _arena => vec![(0, PRIO_PROCESS), (1, 0)];
    sched_getparam Success _arena => vec![(0, 0)];
    sched_getscheduler Success _arena => vec![(0, 0)];
    sched_get_priority_max Success _arena => vec![(0, SCHED_FIFO)];
    sched_get_priority_min Success _arena => vec![(0, SCHED_FIFO)];
    sched_rr_get_interval Success _arena => vec![(0, 0)];
    sched_getaffinity Success _arena => vec![(0, 0), (1, 0x7777_0000_0000 + 1024)];
    ioprio_get Success _arena => vec![(0, 1), (1, 0)];
    getcpu Success _arena => vec![];
    // A size that the kernel does not know, with unknown bytes set: it answers E2BIG and its own size.
    sched_setattr Answer arena => vec![(0, 0), (1, arena.put(1, &[255; 256])), (2, 0)];
    sched_getattr Success _arena => vec![(0, 0), (2, 0x7777_0000_0000 + 80), (3, 0)];
}
