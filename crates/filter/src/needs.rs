//! The system calls that the engine makes of its own accord: in commits, restores, the anchor, and in leaving a program alone.
//!
//! A filter under which one of them could fail is none that the engine can live with. The list is the engine's contract: a case of the
//! suite runs under a filter that ends the process for every other call.

use crate::Question;

/// A call that the engine makes: with any arguments, or with one of these values in one of them.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub nr: u32,
    pub only: Option<(usize, &'static [u64])>,
}

impl Need {
    /// The questions that a filter has to allow.
    pub fn questions(&self) -> impl Iterator<Item = Question> + use<> {
        let (nr, (arg, values)) = (self.nr, self.only.unwrap_or((0, &[])));
        let any = values.is_empty().then_some(Question::any(nr));
        any.into_iter().chain(values.iter().map(move |&value| Question::with(nr, arg, value)))
    }
}

const fn any(nr: u32) -> Need {
    Need { nr, only: None }
}

const fn only(nr: u32, arg: usize, values: &'static [u64]) -> Need {
    Need { nr, only: Some((arg, values)) }
}

/// TCGETS, TIOCGPGRP, TIOCSPGRP, TIOCGWINSZ, FIONREAD, UFFDIO_API, UFFDIO_REGISTER, UFFDIO_UNREGISTER, UFFDIO_WRITEPROTECT, PAGEMAP_SCAN.
const IOCTLS: &[u64] =
    &[0x5401, 0x540f, 0x5410, 0x5413, 0x541b, 0xc018_aa3f, 0xc020_aa00, 0x8010_aa01, 0xc018_aa06, 0xc060_6610];
/// PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK,
/// PR_SET_CHILD_SUBREAPER, PR_SET_SYSCALL_USER_DISPATCH.
const PRCTLS: &[u64] = &[1, 3, 4, 15, 16, 29, 30, 36, 59];
/// The anchor and what it clones; threads; a supervisor that the anchor starts; what fork and vfork are.
const CLONES: &[u64] = &[0x4_8600, 0xd_0f00, 0x25_0f00, 0x8000, 0x10_0011, 0x10_4111];

/// All of them, by their numbers.
pub const NEEDS: &[Need] = &[
    any(0),  // read
    any(1),  // write
    any(2),  // open
    any(3),  // close
    any(4),  // stat
    any(5),  // fstat
    any(7),  // poll
    any(8),  // lseek
    any(9),  // mmap
    any(10), // mprotect
    any(11), // munmap
    any(12), // brk
    any(13), // rt_sigaction
    any(14), // rt_sigprocmask
    any(15), // rt_sigreturn
    only(16, 1, IOCTLS),
    any(17), // pread64
    any(18), // pwrite64
    any(19), // readv
    any(20), // writev
    any(25), // mremap
    any(26), // msync
    any(27), // mincore
    any(28), // madvise
    any(29), // shmget
    any(30), // shmat
    any(31), // shmctl
    any(35), // nanosleep
    any(38), // setitimer
    any(39), // getpid
    any(44), // sendto
    any(45), // recvfrom
    any(46), // sendmsg
    any(47), // recvmsg
    any(55), // getsockopt
    only(56, 0, CLONES),
    any(60),  // exit
    any(62),  // kill
    any(66),  // semctl
    any(67),  // shmdt
    any(70),  // msgrcv
    any(71),  // msgctl
    any(72),  // fcntl
    any(74),  // fsync
    any(77),  // ftruncate
    any(79),  // getcwd
    any(80),  // chdir
    any(95),  // umask
    any(97),  // getrlimit
    any(98),  // getrusage
    any(102), // getuid
    any(109), // setpgid
    any(112), // setsid
    any(121), // getpgid
    any(125), // capget
    any(127), // rt_sigpending
    any(128), // rt_sigtimedwait
    any(129), // rt_sigqueueinfo
    any(131), // sigaltstack
    any(138), // fstatfs
    only(157, 0, PRCTLS),
    any(162), // sync
    any(186), // gettid
    any(200), // tkill
    any(202), // futex
    any(203), // sched_setaffinity
    any(204), // sched_getaffinity
    any(206), // io_setup
    any(207), // io_destroy
    any(208), // io_getevents
    any(209), // io_submit
    any(217), // getdents64
    any(218), // set_tid_address
    any(220), // semtimedop
    any(222), // timer_create
    any(223), // timer_settime
    any(226), // timer_delete
    any(228), // clock_gettime
    any(231), // exit_group
    any(233), // epoll_ctl
    any(234), // tgkill
    any(245), // mq_getsetattr
    any(251), // ioprio_set
    any(252), // ioprio_get
    any(257), // openat
    any(262), // newfstatat
    any(263), // unlinkat
    any(264), // renameat
    any(265), // linkat
    any(267), // readlinkat
    any(273), // set_robust_list
    any(275), // splice
    any(276), // tee
    any(277), // sync_file_range
    any(278), // vmsplice
    any(285), // fallocate
    any(288), // accept4
    any(292), // dup3
    any(293), // pipe2
    any(295), // preadv
    any(296), // pwritev
    any(297), // rt_tgsigqueueinfo
    any(302), // prlimit64
    any(306), // syncfs
    any(314), // sched_setattr
    any(315), // sched_getattr
    any(316), // renameat2
    any(318), // getrandom
    any(319), // memfd_create
    any(324), // membarrier
    any(325), // mlock2
    any(327), // preadv2
    any(328), // pwritev2
    any(332), // statx
    any(334), // rseq
    any(424), // pidfd_send_signal
    any(434), // pidfd_open
    any(436), // close_range
];

/// What else it takes to make an anchor where the program's parent must not have it as a child: clone by the process in between, and
/// wait4 for that one.
pub const APART: &[Need] = &[only(56, 0, &[0x4_4700, 0x4_0611]), any(61)];

/// What else it takes to get into another image of a program by execve, under the filters of the one before: getsid, and a pair of
/// sockets (AF_UNIX) over which descriptors come.
pub const ENTRY: &[Need] = &[only(53, 0, &[1]), any(124)];

/// Where the supervisor may not take one end of that pair: socket (AF_UNIX) and connect.
pub const CONNECTION: &[Need] = &[only(41, 0, &[1]), any(42)];

/// PR_GET_PDEATHSIG, PR_SET_MM, PR_GET_CHILD_SUBREAPER, PR_GET_TID_ADDRESS.
const PRCTLS_FIRST: &[u64] = &[2, 35, 37, 40];

/// What else the engine makes where the program has no filters of its own: when it begins, or resumes, and in servers and trees.
pub const UNFILTERED: &[Need] = &[
    any(36),  // getitimer
    any(48),  // shutdown
    any(51),  // getsockname
    any(110), // getppid
    only(157, 0, PRCTLS_FIRST),
];

/// PR_GET_AUXV, which the standard library's kind of call asks for.
const PRCTLS_OUTSIDE: &[u64] = &[0x4155_5856];

/// What it takes outside of the program: calls of the supervisor that the engine makes none of, in bringing a program up and back.
pub const OUTSIDE: &[Need] = &[
    any(33),  // dup2
    any(59),  // execve
    any(61),  // wait4
    any(73),  // flock
    any(89),  // readlink
    any(101), // ptrace
    any(107), // geteuid
    only(157, 0, PRCTLS_OUTSIDE),
    any(193), // fgetxattr
    any(230), // clock_nanosleep
    any(247), // waitid
    any(258), // mkdirat
    any(271), // ppoll
    any(289), // signalfd4
    any(290), // eventfd2
    any(310), // process_vm_readv
    any(311), // process_vm_writev
];

/// The same, of which what makes them there does without where the answer is ENOSYS, as of an old kernel: clone3 and faccessat2.
pub const OUTSIDE_OR_OLDER: &[Need] = &[any(435), any(439)];

/// What is mapped and protected for a recovered program: its text, and what it may read and write.
pub const TEXT: &[Need] = &[only(9, 2, &[1, 3, 5]), only(10, 2, &[0, 1, 3, 5])];

/// What the engine does better with, and can do without where it is refused.
pub mod wish {
    pub const IO_URING_SETUP: u32 = 425;
    pub const IO_URING_ENTER: u32 = 426;
    pub const IO_URING_REGISTER: u32 = 427;
    /// All three.
    pub const IO_URING: [u32; 3] = [IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER];
    pub const USERFAULTFD: u32 = 323;
    pub const PERF_EVENT_OPEN: u32 = 298;
    pub const CLONE3: u32 = 435;
    pub const FUTEX_WAITV: u32 = 449;
    pub const EXECVE: u32 = 59;
    /// Of the supervisor: a list of the program's page faults, sections by name; and a descriptor of the program's.
    pub const BPF: u32 = 321;
    pub const PIDFD_GETFD: u32 = 438;
    /// Of the supervisor, before it attaches: what processes have in common.
    pub const KCMP: u32 = 312;
    /// To wait for messages in the place of a dead process.
    pub const EPOLL_WAIT: u32 = 232;
    pub const EPOLL_CREATE1: u32 = 291;
    /// To learn what is left of an interval timer.
    pub const GETITIMER: u32 = 36;
    /// To learn of a niceness that a thread has and makes no use of.
    pub const GETPRIORITY: u32 = 140;
    /// A /proc for a program whose root has none: fsopen, fsconfig, fsmount.
    pub const OWN_PROC: [u32; 3] = [430, 431, 432];
    pub const ALL: &[u32] = &[
        IO_URING_SETUP,
        IO_URING_ENTER,
        IO_URING_REGISTER,
        USERFAULTFD,
        PERF_EVENT_OPEN,
        CLONE3,
        FUTEX_WAITV,
        EXECVE,
        EPOLL_WAIT,
        EPOLL_CREATE1,
        GETITIMER,
        GETPRIORITY,
        OWN_PROC[0],
        OWN_PROC[1],
        OWN_PROC[2],
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_doubles() {
        assert!(NEEDS.windows(2).all(|pair| pair[0].nr < pair[1].nr));
    }
}
