//! The archive must not take the room that the program's store needs.

use rustix::fs::fstatvfs;
use std::os::fd::BorrowedFd;

/// This share of the file system stays free.
const SHARE: u64 = 8;

/// Whether the file system has more room than what stays free.
pub fn is_left(dir: BorrowedFd<'_>) -> bool {
    fstatvfs(dir).is_ok_and(|stat| stat.f_bavail > stat.f_blocks / SHARE)
}
