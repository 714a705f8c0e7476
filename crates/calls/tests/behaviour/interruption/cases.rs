//! One test a call, or a case of it.

use super::waiting::*;
use super::{interrupt, Case};
use crate::arena::{bytes, LOADED};
use crate::descriptors::new_pipe;
use crate::raw::{make, must};

const SO_RCVTIMEO: u64 = 20;
const SO_SNDTIMEO: u64 = 21;
const AT_FDCWD: u64 = -100_i64 as u64;

macro_rules! interruptions {
    ($($test:ident $row:ident $case:ident $arena:ident => $args:expr;)*) => {
        pub const ROWS: &[&str] = &[$(stringify!($row)),*];

        $(
            #[test]
            fn $test() {
                interrupt(stringify!($row), Case::$case, |$arena| $args.to_vec());
            }
        )*
    };
}

interruptions! {
    read read Plain a => [fed_pipe(a), a.slot(0), 10];
    read_of_socket read Plain a => [fed_socket(a), a.slot(0), 10];
    read_of_timed_socket read Timeout a => [timed(a, SO_RCVTIMEO), a.slot(0), 10];
    readv readv Plain a => [fed_pipe(a), vector(a), 1];
    readv_of_timed_socket readv Timeout a => [timed(a, SO_RCVTIMEO), vector(a), 1];
    preadv2 preadv2 Plain a => [fed_pipe(a), vector(a), 1, u64::MAX, u64::MAX, 0];
    write write Plain a => [full_pipe(a), a.slot(2), 10];
    writev writev Plain a => [full_pipe(a), vector(a), 1];
    pwritev2 pwritev2 Plain a => [full_pipe(a), vector(a), 1, u64::MAX, u64::MAX, 0];
    splice splice Plain a => [fed_pipe(a), 0, new_pipe(a).1, 0, 10, 0];
    tee tee Plain a => [fed_pipe(a), new_pipe(a).1, 10, 0];
    vmsplice vmsplice Plain a => [full_pipe(a), vector(a), 1, 0];
    sendfile sendfile Plain a => {
        let path = a.text("/etc/passwd");
        let file = must("open", [path, 0]);
        a.finally(move || must("close", [file]));
        [full_pipe(a), file, 0, 10]
    };

    recvfrom recvfrom Plain a => [fed_socket(a), a.slot(0), 10, 0, 0, 0];
    recvfrom_with_timeout recvfrom Timeout a => [timed(a, SO_RCVTIMEO), a.slot(0), 10, 0, 0, 0];
    recvmsg recvmsg Plain a => [fed_socket(a), header(a), 0];
    recvmsg_with_timeout recvmsg Timeout a => [timed(a, SO_RCVTIMEO), header(a), 0];
    recvmmsg recvmmsg Plain a => [fed_socket(a), header(a), 1, 0, 0];
    recvmmsg_with_timeout recvmmsg Timeout a => [timed(a, SO_RCVTIMEO), header(a), 1, 0, 0];
    accept accept Plain a => [listener(a), 0, 0];
    accept4 accept4 Plain a => [listener(a), 0, 0, 0];
    accept_with_timeout accept Timeout a => {
        let listener = listener(a);
        set_timeout(a, listener, SO_RCVTIMEO);
        [listener, 0, 0]
    };
    connect connect Plain a => busy_listener(a);
    connect_with_timeout connect Timeout a => {
        let args = busy_listener(a);
        set_timeout(a, args[0], SO_SNDTIMEO);
        args
    };
    sendto sendto Plain a => [full_socket(a, 0), a.slot(0), 10, 0, 0, 0];
    sendto_with_timeout sendto Timeout a => [full_socket(a, SO_SNDTIMEO), a.slot(0), 10, 0, 0, 0];
    sendmsg sendmsg Plain a => [full_socket(a, 0), header(a), 0];
    sendmmsg sendmmsg Plain a => [full_socket(a, 0), header(a), 1, 0];

    open open Plain a => [fifo(a), 0, 0];
    openat openat Plain a => [AT_FDCWD, fifo(a), 0, 0];
    openat2 openat2 Plain a => [AT_FDCWD, fifo(a), a.words(&[0, 0, 0]), 24];
    creat creat Plain a => [fifo(a), 0o600];
    flock flock Plain a => {
        let (holder, waiter) = locked(a);
        must("flock", [holder, 2]);
        a.feed("flock", &[holder, 8]);
        [waiter, 2]
    };
    fcntl fcntl Plain a => {
        let (holder, waiter) = locked(a);
        // F_OFD_SETLKW of a write lock on the whole file, and F_OFD_SETLK of an unlock.
        let (lock, unlock) = (a.words(&[1, 0, 0, 0]), a.words(&[2, 0, 0, 0]));
        must("fcntl", [holder, 37, lock]);
        a.feed("fcntl", &[holder, 37, unlock]);
        [waiter, 38, lock]
    };

    poll poll Plain a => {
        let reader = fed_pipe(a);
        [a.words(&[reader | 1 << 32]), 1, u64::MAX]
    };
    ppoll ppoll Plain a => {
        let reader = fed_pipe(a);
        [a.words(&[reader | 1 << 32]), 1, 0, 0, 8]
    };
    select select Plain _a => [0, 0, 0, 0, 0];
    pselect6 pselect6 Plain _a => [0, 0, 0, 0, 0, 0];
    epoll_wait epoll_wait Plain a => [epoll(a), a.slot(0), 1, u64::MAX];
    epoll_pwait epoll_pwait Plain a => [epoll(a), a.slot(0), 1, u64::MAX, 0, 8];
    epoll_pwait2 epoll_pwait2 Plain a => [epoll(a), a.slot(0), 1, 0, 0, 8];

    nanosleep nanosleep Plain a => [a.words(&LONG), a.slot(0)];
    clock_nanosleep clock_nanosleep Plain a => [1, 0, a.words(&LONG), a.slot(0)];
    clock_nanosleep_until clock_nanosleep Plain a => [1, 1, a.words(&[u64::MAX >> 8, 0]), 0];
    pause pause Plain _a => [];
    rt_sigsuspend rt_sigsuspend Plain a => [a.words(&[0]), 8];
    rt_sigtimedwait rt_sigtimedwait Plain a => [a.words(&[1 << 9]), 0, 0, 8];
    futex futex Plain a => [waited_word(a), 0, 7, 0];
    futex_with_timeout futex Timeout a => [waited_word(a), 0, 7, a.words(&LONG)];
    futex_waitv futex_waitv Plain a => {
        let word = waited_word(a);
        [a.words(&[7, word, 2]), 1, 0, 0, 0]
    };
    futex_wait futex_wait Plain a => [waited_word(a), 7, 0xffff_ffff, 2, 0, 0];

    wait4 wait4 Plain a => {
        stays(a);
        [u64::MAX, 0, 0, 0]
    };
    waitid waitid Plain a => {
        stays(a);
        [0, 0, 0, 4, 0]
    };

    semop semop Plain a => [ipc(a, "semget", [0, 1, 0o600], "semctl"), a.words(&[0xffff << 16]), 1];
    semtimedop semtimedop Plain a => {
        let id = ipc(a, "semget", [0, 1, 0o600], "semctl");
        [id, a.words(&[0xffff << 16]), 1, a.words(&LONG)]
    };
    msgrcv msgrcv Plain a => [ipc(a, "msgget", [0, 0o600, 0], "msgctl"), a.slot(0), 100, 0, 0];
    msgsnd msgsnd Plain a => {
        let id = ipc(a, "msgget", [0, 0o600, 0], "msgctl");
        let message = a.put(0, &bytes(&[1]));
        // Until the queue is full (16 KiB).
        while make("msgsnd", [id, message, 4000, 0o4000]) == 0 {}
        [id, message, 4000, 0]
    };
    mq_timedreceive mq_timedreceive Plain a => {
        let fd = queue(a);
        let message = a.text("message");
        let now = a.words(&[0, 0]);
        a.feed("mq_timedsend", &[fd, message, 7, 0, now]);
        [fd, a.slot(0), 8, 0, 0]
    };
    mq_timedsend mq_timedsend Plain a => {
        let fd = queue(a);
        let message = a.text("message");
        must("mq_timedsend", [fd, message, 7, 0, 0]);
        let now = a.words(&[0, 0]);
        a.feed("mq_timedreceive", &[fd, a.slot(0), 8, 0, now]);
        [fd, message, 7, 0, 0]
    };
    io_getevents io_getevents Plain a => {
        a.loaded = a.scratch(&[0; 8]);
        a.first("io_setup", &[1, a.loaded]);
        [LOADED, 1, 1, a.slot(0), 0]
    };
    io_pgetevents io_pgetevents Plain a => {
        a.loaded = a.scratch(&[0; 8]);
        a.first("io_setup", &[1, a.loaded]);
        [LOADED, 1, 1, a.slot(0), 0, 0]
    };
    io_uring_enter io_uring_enter Plain a => {
        let parameters = a.put(0, &[0; 120]);
        let ring = make("io_uring_setup", [1, parameters]);
        if let Ok(fd) = u64::try_from(ring) {
            a.finally(move || must("close", [fd]));
        }
        [ring as u64, 0, 1, 1, 0, 0]
    };
}
