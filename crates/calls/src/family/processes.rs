//! Processes: who they are, how they are made, replaced, awaited and ended.

use crate::Amount::{Low, Whole};
use crate::Interrupted::Restart;
use crate::Len::{Bytes, Fixed, Iovec, Special};
use crate::RingOp::Waitid;
use crate::Witness;

rows! {
    39 getpid Pure;
    56 clone Spawn .interrupted(Restart) .decided_by(0) .out(2, Fixed(4)) .out(3, Fixed(4))
        .note("CLONE_VM makes a thread or a vfork; the tid words are written in parent and child, the pidfd where the \
            parent's is");
    57 fork Spawn .interrupted(Restart);
    58 vfork Spawn .interrupted(Restart)
        .note("the parent stands still until the child's exec or exit; its stack is shared");
    59 execve Exec .interrupted(Restart);
    60 exit Exit;
    61 wait4 Wait .waits(Restart) .out(1, Fixed(4)) .out(3, Fixed(144));
    63 uname Pure .out(0, Fixed(390));
    99 sysinfo Pure .out(0, Fixed(112));
    103 syslog Input .waits(Restart) .decided_by(0) .out(1, Bytes(Low(2)))
        .note("SYSLOG_ACTION_READ takes lines away, READ_CLEAR and CLEAR forget them; the others are Pure or \
            administration");
    109 setpgid Redo .note("the same group set again; EACCES only if the child called exec in between");
    110 getppid Pure .note("the engine answers itself where parenthood is virtual");
    111 getpgrp Pure;
    112 setsid Once .witness(Witness::Leader)
        .note("a second one answers EPERM; no ring operation; getsid answers the own process id after, not before");
    121 getpgid Pure;
    124 getsid Pure;
    186 gettid Pure;
    231 exit_group Exit;
    247 waitid Wait .waits(Restart) .decided_by(3) .ring(Waitid) .out(2, Fixed(128)) .out(4, Fixed(144))
        .note("WNOWAIT leaves the status where it is; with P_PIDFD the second argument is a descriptor");
    310 process_vm_readv Pure .process(0) .out(1, Iovec(Whole(2)));
    311 process_vm_writev Output .process(0) .out(3, Iovec(Whole(4)))
        .note("the memory of another process; of the program itself if it names its own pid: pages that BPF and faults \
            do not show");
    312 kcmp Pure .process(0).process(1);
    318 getrandom Pure .interrupted(Restart) .out(0, Bytes(Whole(1)));
    322 execveat Exec .fd(0) .interrupted(Restart);
    434 pidfd_open Open .process(0);
    435 clone3 Spawn .interrupted(Restart) .decided_by(0) .out(0, Special)
        .note("flags, pidfd, child_tid and parent_tid are addresses in bytes 0..32 of the struct clone_args");
    438 pidfd_getfd Open .fd(0);
}
