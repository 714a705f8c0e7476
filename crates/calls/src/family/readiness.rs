//! Waiting until a descriptor is ready. Reports state and takes nothing away, but for edge-triggered and one-shot
//! epoll.

use crate::Amount::Low;
use crate::Interrupted::Eintr;
use crate::Len::{Bits, Fixed, Items};
use crate::RingOp::{EpollWait, PollAdd};
use crate::Unit::{Milliseconds, Timespec, Timeval};

const EPOLL: &str = "EPOLLET and EPOLLONESHOT registrations consume the event: the engine takes those as Input";

rows! {
    7 poll Pure .waits(Eintr) .timeout(2, Milliseconds) .ring(PollAdd) .out(0, Items(Low(1), 8));
    23 select Pure .waits(Eintr) .timeout_left(4, Timeval) .out(1, Bits(Low(0))) .out(2, Bits(Low(0))) .out(3, Bits(Low(0))) .out(4, Fixed(16))
        .note("the remaining time is written back");
    232 epoll_wait Pure .fd(0) .waits(Eintr) .timeout(3, Milliseconds) .ring(EpollWait) .out(1, Items(Low(2), 12)) .note(EPOLL);
    270 pselect6 Pure .waits(Eintr) .timeout_left(4, Timespec) .out(1, Bits(Low(0))) .out(2, Bits(Low(0))) .out(3, Bits(Low(0))) .out(4, Fixed(16))
        .note("the remaining time is written back; the sixth argument holds a signal mask to be virtualised");
    271 ppoll Pure .waits(Eintr) .timeout_left(2, Timespec) .ring(PollAdd) .out(0, Items(Low(1), 8)) .out(2, Fixed(16))
        .note("the remaining time is written back; the fourth argument is a signal mask to be virtualised");
    281 epoll_pwait Pure .fd(0) .waits(Eintr) .timeout(3, Milliseconds) .out(1, Items(Low(2), 12)) .note(EPOLL);
    441 epoll_pwait2 Pure .fd(0) .waits(Eintr) .timeout(3, Timespec) .out(1, Items(Low(2), 12)) .note(EPOLL);
}
