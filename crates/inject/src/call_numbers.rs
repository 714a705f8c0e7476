//! Numbers of the system calls, signals and errors that a campaign may name.

const CALLS: [(&str, i64); 24] = [
    ("read", libc::SYS_read),
    ("write", libc::SYS_write),
    ("pread64", libc::SYS_pread64),
    ("pwrite64", libc::SYS_pwrite64),
    ("readv", libc::SYS_readv),
    ("writev", libc::SYS_writev),
    ("recvfrom", libc::SYS_recvfrom),
    ("sendto", libc::SYS_sendto),
    ("open", libc::SYS_open),
    ("openat", libc::SYS_openat),
    ("close", libc::SYS_close),
    ("lseek", libc::SYS_lseek),
    ("fstat", libc::SYS_fstat),
    ("newfstatat", libc::SYS_newfstatat),
    ("mmap", libc::SYS_mmap),
    ("mprotect", libc::SYS_mprotect),
    ("munmap", libc::SYS_munmap),
    ("brk", libc::SYS_brk),
    ("futex", libc::SYS_futex),
    ("clone3", libc::SYS_clone3),
    ("fsync", libc::SYS_fsync),
    ("rename", libc::SYS_rename),
    ("unlink", libc::SYS_unlink),
    ("epoll_wait", libc::SYS_epoll_wait),
];

const SIGNALS: [(&str, i32); 16] = [
    ("SIGHUP", libc::SIGHUP),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGILL", libc::SIGILL),
    ("SIGTRAP", libc::SIGTRAP),
    ("SIGABRT", libc::SIGABRT),
    ("SIGBUS", libc::SIGBUS),
    ("SIGFPE", libc::SIGFPE),
    ("SIGKILL", libc::SIGKILL),
    ("SIGUSR1", libc::SIGUSR1),
    ("SIGSEGV", libc::SIGSEGV),
    ("SIGPIPE", libc::SIGPIPE),
    ("SIGALRM", libc::SIGALRM),
    ("SIGTERM", libc::SIGTERM),
    ("SIGSTOP", libc::SIGSTOP),
    ("SIGXCPU", libc::SIGXCPU),
];

const ERRORS: [(&str, i32); 14] = [
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("EINTR", libc::EINTR),
    ("EIO", libc::EIO),
    ("EBADF", libc::EBADF),
    ("EAGAIN", libc::EAGAIN),
    ("ENOMEM", libc::ENOMEM),
    ("EACCES", libc::EACCES),
    ("EFAULT", libc::EFAULT),
    ("EINVAL", libc::EINVAL),
    ("EMFILE", libc::EMFILE),
    ("ENOSPC", libc::ENOSPC),
    ("EPIPE", libc::EPIPE),
    ("ECONNRESET", libc::ECONNRESET),
];

fn number<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

pub fn call(name: &str) -> Option<i64> {
    number(&CALLS, name)
}

pub fn names() -> String {
    CALLS.map(|(name, _)| name).join(", ")
}

pub fn signal(name: &str) -> Option<i32> {
    number(&SIGNALS, name)
}

pub fn error(name: &str) -> Option<i32> {
    number(&ERRORS, name)
}

/// The name of a signal, or its number.
pub fn signal_name(number: i32) -> String {
    let known = SIGNALS.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(name, _)| (*name).into())
}

/// Whether the third argument of a call is the length of its buffer.
pub fn has_length(name: &str) -> bool {
    matches!(name, "read" | "write" | "pread64" | "pwrite64" | "recvfrom" | "sendto")
}
