//! prctl: state of a thread, of its address space, and security bits.

use crate::Amount::Whole;
use crate::Len::{Bytes, Fixed, Special};

commands! {
    157 prctl, descriptors 0, numbers from crate::checks::prctl;
    1 PR_SET_PDEATHSIG Thread;
    2 PR_GET_PDEATHSIG Pure .out(1, Fixed(4));
    3 PR_GET_DUMPABLE Pure;
    4 PR_SET_DUMPABLE Thread;
    7 PR_GET_KEEPCAPS Pure;
    8 PR_SET_KEEPCAPS Security;
    13 PR_GET_TIMING Pure;
    14 PR_SET_TIMING Thread;
    15 PR_SET_NAME Thread;
    16 PR_GET_NAME Pure .out(1, Fixed(16));
    21 PR_GET_SECCOMP Pure;
    22 PR_SET_SECCOMP Security;
    23 PR_CAPBSET_READ Pure;
    24 PR_CAPBSET_DROP Security;
    25 PR_GET_TSC Pure .out(1, Fixed(4));
    26 PR_SET_TSC Thread .note("PR_TSC_SIGSEGV makes rdtsc a fault, in the engine too");
    27 PR_GET_SECUREBITS Pure;
    28 PR_SET_SECUREBITS Security;
    29 PR_SET_TIMERSLACK Thread;
    30 PR_GET_TIMERSLACK Pure;
    31 PR_TASK_PERF_EVENTS_DISABLE Object;
    32 PR_TASK_PERF_EVENTS_ENABLE Object;
    33 PR_MCE_KILL Thread;
    34 PR_MCE_KILL_GET Pure;
    35 PR_SET_MM Thread .out(2, Special)
        .note("PR_SET_MM_MAP_SIZE writes 4 bytes; the others move the marks of the address space");
    36 PR_SET_CHILD_SUBREAPER Thread;
    37 PR_GET_CHILD_SUBREAPER Pure .out(1, Fixed(4));
    38 PR_SET_NO_NEW_PRIVS Security;
    39 PR_GET_NO_NEW_PRIVS Pure;
    40 PR_GET_TID_ADDRESS Pure .out(1, Fixed(8))
        .note("the engine answers itself if it has an address of its own there");
    41 PR_SET_THP_DISABLE Thread;
    42 PR_GET_THP_DISABLE Pure;
    47 PR_CAP_AMBIENT Security;
    52 PR_GET_SPECULATION_CTRL Pure;
    53 PR_SET_SPECULATION_CTRL Thread;
    57 PR_SET_IO_FLUSHER Thread;
    58 PR_GET_IO_FLUSHER Pure;
    59 PR_SET_SYSCALL_USER_DISPATCH Thread
        .note("the engine's own gate stands on it: the program's must be simulated or refused");
    62 PR_SCHED_CORE Thread .out(4, Fixed(8));
    65 PR_SET_MDWE Thread .note("from then on no page becomes executable: sites cannot be rewritten any more");
    66 PR_GET_MDWE Pure;
    67 PR_SET_MEMORY_MERGE Thread;
    68 PR_GET_MEMORY_MERGE Pure;
    77 PR_TIMER_CREATE_RESTORE_IDS Thread;
    78 PR_FUTEX_HASH Thread;
    0x4155_5856 PR_GET_AUXV Pure .out(1, Bytes(Whole(2)));
    0x5356_4d41 PR_SET_VMA Map;
    0x6c74_754f PR_OUTLAST Thread
        .note("outlast's own: what programs that take part say to the engine; to every kernel it is invalid");
}
