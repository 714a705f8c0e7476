//! Priorities, processors, limits and usage.

use crate::Amount::Low;
use crate::Len::{Bytes, Fixed};

const SAME: &str = "the same policy, priority or set of processors set again";

rows! {
    24 sched_yield Pure;
    97 getrlimit Thread .out(1, Fixed(16)) .note("the engine's own memory counts to the kernel: it answers itself");
    98 getrusage Pure .out(1, Fixed(144));
    140 getpriority Pure .process(1).user_if(0, 2);
    141 setpriority Redo .process(1).user_if(0, 2) .note(SAME);
    142 sched_setparam Redo .process(0) .note(SAME);
    143 sched_getparam Pure .process(0) .out(1, Fixed(4));
    144 sched_setscheduler Redo .process(0) .note(SAME);
    145 sched_getscheduler Pure .process(0);
    146 sched_get_priority_max Pure;
    147 sched_get_priority_min Pure;
    148 sched_rr_get_interval Pure .process(0) .out(1, Fixed(16));
    160 setrlimit Redo .note("the same limit set again");
    203 sched_setaffinity Redo .process(0) .note(SAME);
    204 sched_getaffinity Pure .process(0) .out(2, Bytes(Low(1)));
    251 ioprio_set Redo .process(1).user_if(0, 3) .note(SAME);
    252 ioprio_get Pure .process(1).user_if(0, 3);
    302 prlimit64 Redo .process(0) .decided_by(2) .out(3, Fixed(16))
        .note("the same limit set again; the old one that it returns is the committed one; Pure if no new limit is \
            given");
    309 getcpu Pure .out(0, Fixed(4)) .out(1, Fixed(4));
    314 sched_setattr Redo .process(0) .out(1, Fixed(4))
        .note("the same attributes set again; the size is written back when it is not the kernel's");
    315 sched_getattr Pure .process(0) .out(1, Bytes(Low(2)));
}
