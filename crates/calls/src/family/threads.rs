//! State of a thread, and what threads wait on.

use crate::Amount::Whole;
use crate::Interrupted::{Restart, Special as ByArgument};
use crate::Len::{Bytes, Fixed, Special};
use crate::RingOp::{FutexWait, FutexWaitv, FutexWake};
use crate::Unit::Timespec;

rows! {
    135 personality Thread .decided_by(0) .note("0xffffffff only asks; returns the old value");
    154 modify_ldt Thread .decided_by(0) .out(1, Bytes(Whole(2)))
        .note("reads or writes the local descriptor table of the address space");
    157 prctl Thread .decided_by(0) .out(1, Special) .out(2, Special) .out(4, Special)
        .note("by its option: name, dumpable, death signal, subreaper, SUD, speculation, no_new_privs (Security), \
            seccomp (Security)");
    158 arch_prctl Thread .decided_by(0) .out(1, Fixed(8))
        .note("FS and GS base; features of the shadow stack; writes 8 bytes at most");
    202 futex Pure .waits(ByArgument) .timeout(3, Timespec) .ring(FutexWait) .out(0, Fixed(4)) .out(4, Fixed(4))
        .note("restarted without a time-out, EINTR with one; FUTEX_LOCK_PI, TRYLOCK_PI and UNLOCK_PI write the word, \
            WAKE_OP the second; for the other operations those arguments may be no addresses");
    218 set_tid_address Thread .note("the kernel writes 4 bytes there when the thread ends");
    273 set_robust_list Thread .note("the kernel writes the locks in the list when the thread ends");
    274 get_robust_list Pure .process(0) .out(1, Fixed(8)) .out(2, Fixed(8));
    324 membarrier Thread .decided_by(0) .note("REGISTER commands are state of the address space; the others are Pure");
    334 rseq Thread
        .note("the kernel writes the 32 bytes of the registered struct whenever the thread is moved or interrupted");
    335 uretprobe Thread .note("only valid at the kernel's own trampoline, which must issue it itself");
    336 uprobe Thread .note("only valid at the kernel's own trampoline, which must issue it itself");
    449 futex_waitv Pure .waits(Restart) .ring(FutexWaitv);
    454 futex_wake Pure .ring(FutexWake);
    455 futex_wait Pure .waits(Restart) .ring(FutexWait);
    456 futex_requeue Pure;
}
