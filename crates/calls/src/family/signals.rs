//! Signals. The engine has handlers of its own, delivers the program's at safe points, and keeps masks and stacks
//! virtual.

use crate::Amount::Whole;
use crate::Interrupted::{Eintr, Special};
use crate::Len::{Bytes, Fixed};
use crate::Unit::Timespec;

rows! {
    13 rt_sigaction Signal .out(2, Fixed(32));
    14 rt_sigprocmask Signal .out(2, Fixed(8));
    15 rt_sigreturn Signal;
    34 pause Signal .waits(Eintr);
    62 kill Signal .note("to others a visible event; to itself the engine's own delivery");
    127 rt_sigpending Signal .out(0, Bytes(Whole(1)));
    128 rt_sigtimedwait Signal .waits(Eintr) .timeout(2, Timespec) .out(1, Fixed(128)) .note("takes the signal: an input");
    129 rt_sigqueueinfo Signal .note("to others a visible event; to itself the engine's own delivery");
    130 rt_sigsuspend Signal .waits(Eintr);
    131 sigaltstack Signal .out(1, Fixed(24));
    200 tkill Signal .note("to others a visible event; to itself the engine's own delivery");
    219 restart_syscall Signal .waits(Special) .note("goes on with the call that was interrupted, which decides");
    234 tgkill Signal .note("to others a visible event; to itself the engine's own delivery");
    297 rt_tgsigqueueinfo Signal .note("to others a visible event; to itself the engine's own delivery");
    424 pidfd_send_signal Signal .fd(0) .note("to others a visible event; to itself the engine's own delivery");
    282 signalfd Open .fd(0) .note("with a descriptor given, sets its mask anew: the same again");
    289 signalfd4 Open .fd(0) .note("with a descriptor given, sets its mask anew: the same again");
}
