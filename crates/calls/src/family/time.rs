//! Clocks, sleeping and timers.

use crate::Interrupted::Eintr;
use crate::Len::Fixed;
use crate::RingOp::Timeout;
use crate::Unit::Timespec;

rows! {
    35 nanosleep Pure .waits(Eintr) .timeout(0, Timespec) .ring(Timeout) .out(1, Fixed(16));
    36 getitimer Pure .out(1, Fixed(32));
    96 gettimeofday Pure .out(0, Fixed(16)) .out(1, Fixed(8));
    100 times Pure .out(0, Fixed(32));
    201 time Pure .out(0, Fixed(8));
    224 timer_gettime Pure .out(1, Fixed(32));
    225 timer_getoverrun Pure;
    228 clock_gettime Pure .clock(0) .out(1, Fixed(16));
    229 clock_getres Pure .clock(0) .out(1, Fixed(16));
    230 clock_nanosleep Pure .waits(Eintr) .timeout(2, Timespec) .ring(Timeout) .out(3, Fixed(16));
    283 timerfd_create Open;
    286 timerfd_settime Redo .fd(0) .out(3, Fixed(32))
        .note("the same expiry set again; a relative one counts from the second call; the old value that it returns is \
            the committed one");
    287 timerfd_gettime Pure .fd(0) .out(1, Fixed(32));
}
