//! System calls issued by the engine itself. They run inside the engine's text, which dispatch lets pass.

use core::arch::asm;

/// Issues a system call; the result is the kernel's raw value (negative error number on failure).
///
/// # Safety
/// The caller vouches for the memory that the call reads or writes.
#[inline(always)]
pub unsafe fn call6(nr: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    let ret: i64;
    asm!("syscall", inlateout("rax") nr as i64 => ret, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
        in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    ret
}

macro_rules! syscall {
    ($nr:expr) => {
        $crate::sys::call6($nr, 0, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr) => {
        $crate::sys::call6($nr, $a as u64, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr) => {
        $crate::sys::call6($nr, $a as u64, $b as u64, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr) => {
        $crate::sys::call6($nr, $a as u64, $b as u64, $c as u64, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr) => {
        $crate::sys::call6($nr, $a as u64, $b as u64, $c as u64, $d as u64, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => {
        $crate::sys::call6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $crate::sys::call6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, $f as u64)
    };
}
pub(crate) use syscall;

/// Assembler: loads number and arguments of a call from the seven words at `rdi`.
macro_rules! load_call {
    () => {
        "mov 0(%rdi), %rax
        mov 16(%rdi), %rsi
        mov 24(%rdi), %rdx
        mov 32(%rdi), %r10
        mov 40(%rdi), %r8
        mov 48(%rdi), %r9
        mov 8(%rdi), %rdi"
    };
}
pub(crate) use load_call;

/// Numbers of the calls that the engine names.
pub mod nr {
    #![allow(dead_code)]
    macro_rules! numbers { ($($name:ident = $n:literal),* $(,)?) => { $(pub const $name: u64 = $n;)* } }
    numbers! {
        READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, STAT = 4, FSTAT = 5, LSTAT = 6, POLL = 7, LSEEK = 8, MMAP = 9, MPROTECT = 10,
        MUNMAP = 11, BRK = 12, RT_SIGACTION = 13, RT_SIGPROCMASK = 14, RT_SIGRETURN = 15, IOCTL = 16, PREAD64 = 17,
        PWRITE64 = 18, READV = 19, WRITEV = 20, ACCESS = 21, PIPE = 22, SELECT = 23, MREMAP = 25, MSYNC = 26, MINCORE = 27, MADVISE = 28, DUP = 32,
        DUP2 = 33, PAUSE = 34, NANOSLEEP = 35, GETITIMER = 36, ALARM = 37, SETITIMER = 38, GETPID = 39, SENDFILE = 40,
        SOCKET = 41, CONNECT = 42, ACCEPT = 43, SENDTO = 44, RECVFROM = 45, SENDMSG = 46, RECVMSG = 47,
        SHUTDOWN = 48, BIND = 49, LISTEN = 50, SOCKETPAIR = 53, SETSOCKOPT = 54, CLONE = 56, FORK = 57, VFORK = 58, EXECVE = 59,
        EXIT = 60, WAIT4 = 61, KILL = 62, FCNTL = 72, FLOCK = 73, TRUNCATE = 76, FTRUNCATE = 77, GETDENTS = 78, GETCWD = 79, CHDIR = 80, FCHDIR = 81,
        RENAME = 82, MKDIR = 83, FSTATFS = 138,
        RMDIR = 84, CREAT = 85, LINK = 86, UNLINK = 87, SYMLINK = 88, READLINK = 89, UMASK = 95, GETRUSAGE = 98, TIMES = 100, GETPPID = 110,
        SETPGID = 109, GETPGRP = 111, SETSID = 112, GETPGID = 121, GETSID = 124, RT_SIGPENDING = 127, RT_SIGTIMEDWAIT = 128,
        RT_SIGQUEUEINFO = 129, RT_SIGSUSPEND = 130, SIGALTSTACK = 131, PRCTL = 157, ARCH_PRCTL = 158, GETTID = 186,
        TKILL = 200, FUTEX = 202, GETDENTS64 = 217, SET_TID_ADDRESS = 218, RESTART_SYSCALL = 219, FADVISE64 = 221,
        CLOCK_GETTIME = 228, CLOCK_NANOSLEEP = 230, EXIT_GROUP = 231, EPOLL_WAIT = 232, TGKILL = 234, WAITID = 247, OPENAT = 257,
        MKDIRAT = 258, UNLINKAT = 263, RENAMEAT = 264, LINKAT = 265, SYMLINKAT = 266, READLINKAT = 267, PSELECT6 = 270, PPOLL = 271,
        SET_ROBUST_LIST = 273, EPOLL_PWAIT = 281, EVENTFD2 = 290, ACCEPT4 = 288, DUP3 = 292, PIPE2 = 293, PREADV = 295, PWRITEV = 296,
        RT_TGSIGQUEUEINFO = 297, RENAMEAT2 = 316, MEMFD_CREATE = 319, EXECVEAT = 322, USERFAULTFD = 323,
        PREADV2 = 327, GETSOCKNAME = 51, GETPEERNAME = 52, GETSOCKOPT = 55, GETRLIMIT = 97, GETXATTR = 191,
        LGETXATTR = 192, FGETXATTR = 193, SETXATTR = 188, LSETXATTR = 189, FSETXATTR = 190, REMOVEXATTR = 197, LREMOVEXATTR = 198, FREMOVEXATTR = 199, NEWFSTATAT = 262, SPLICE = 275,
        FALLOCATE = 285, RECVMMSG = 299, PRLIMIT64 = 302, SENDMMSG = 307, COPY_FILE_RANGE = 326, PWRITEV2 = 328, RSEQ = 334, IO_URING_SETUP = 425, IO_URING_ENTER = 426, IO_URING_REGISTER = 427, CLONE3 = 435,
        CLOSE_RANGE = 436, FUTEX_WAITV = 449, OPENAT2 = 437, PIDFD_OPEN = 434, EPOLL_PWAIT2 = 441, INOTIFY_ADD_WATCH = 254, INOTIFY_RM_WATCH = 255,
        PIDFD_SEND_SIGNAL = 424, LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE = 445,
        TEE = 276, INOTIFY_INIT1 = 294, SIGNALFD = 282, TIMERFD_CREATE = 283, EVENTFD = 284, TIMERFD_SETTIME = 286, TIMERFD_GETTIME = 287, SIGNALFD4 = 289,
        EPOLL_CREATE1 = 291, EPOLL_CTL = 233,
    }
}

/// Error numbers, negative as the kernel returns them.
pub mod err {
    pub const EPERM: i64 = -1;
    pub const ENOENT: i64 = -2;
    pub const EINTR: i64 = -4;
    pub const EBADF: i64 = -9;
    pub const EAGAIN: i64 = -11;
    pub const ENOMEM: i64 = -12;
    pub const EACCES: i64 = -13;
    pub const EFAULT: i64 = -14;
    pub const EEXIST: i64 = -17;
    pub const EINVAL: i64 = -22;
    pub const EPIPE: i64 = -32;
    pub const ENOSYS: i64 = -38;
    pub const EALREADY: i64 = -114;
    pub const EINPROGRESS: i64 = -115;
    pub const EOPNOTSUPP: i64 = -95;
    pub const EISCONN: i64 = -106;
    pub const ETIMEDOUT: i64 = -110;
    pub const ECANCELED: i64 = -125;
    /// Results from -4095 to -1 are errors.
    pub const fn is(r: i64) -> bool {
        r < 0 && r >= -4095
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    let mut t = [0u64; 2];
    // SAFETY: the kernel writes the 16 bytes of `t`.
    unsafe { syscall!(nr::CLOCK_GETTIME, 1, t.as_mut_ptr()) };
    t[0] * 1_000_000_000 + t[1]
}

pub const FUTEX_WAIT: u64 = 0;
pub const FUTEX_WAKE: u64 = 1;

/// Sleeps while `word` is `value`; wakes up for any reason.
pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32, timeout_ns: Option<u64>) -> i64 {
    let ts = timeout_ns.map(|n| [n / 1_000_000_000, n % 1_000_000_000]);
    let p = ts.as_ref().map_or(core::ptr::null(), |t| t.as_ptr());
    // SAFETY: `word` and the time lie in memory for the length of the call.
    unsafe { syscall!(nr::FUTEX, word.as_ptr(), FUTEX_WAIT, value, p) }
}

/// Sleeps while each word is the value beside it; wakes up for any reason. ENOSYS or EPERM if that cannot be had.
pub fn futex_wait_any<const N: usize>(
    words: [(&core::sync::atomic::AtomicU32, u32); N],
    timeout_ns: Option<u64>,
) -> i64 {
    if !crate::call_filters::permit(outlast_filter::needs::wish::FUTEX_WAITV) {
        return err::EPERM;
    }
    /// FUTEX2_SIZE_U32, in memory shared with other processes.
    const SHARED_WORD: u64 = 2;
    const CLOCK_MONOTONIC: u64 = 1;
    // struct futex_waitv: value, address, flags.
    let waits = words.map(|(word, value)| [value as u64, word.as_ptr() as u64, SHARED_WORD]);
    let until = timeout_ns.map(|n| now_ns() + n).map(|n| [n / 1_000_000_000, n % 1_000_000_000]);
    let p = until.as_ref().map_or(core::ptr::null(), |t| t.as_ptr());
    // SAFETY: the words, the array and the time lie in memory for the length of the call.
    unsafe { syscall!(nr::FUTEX_WAITV, waits.as_ptr(), waits.len(), 0, p, CLOCK_MONOTONIC) }
}

/// Wakes everybody who sleeps on `word`.
pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    // SAFETY: futex wake reads nothing.
    unsafe { syscall!(nr::FUTEX, word.as_ptr(), FUTEX_WAKE, i32::MAX) };
}

/// Reads the time stamp counter.
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: rdtsc has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}
