//! The archive must not take the room that the program's store needs.

use rustix::fs::fstatvfs;
use std::os::fd::BorrowedFd;

/// This share of the file system stays free.
const SHARE: u64 = 8;
/// And so many bytes, which a few commits take before they are folded, but of a small file system no more than this share.
const LEAST: u64 = 64 << 20;
const SHARE_OF_SMALL: u64 = 4;

/// Whether the file system has more room than what stays free.
pub fn is_left(dir: BorrowedFd<'_>) -> bool {
    fstatvfs(dir).is_ok_and(|stat| {
        let least = (LEAST / stat.f_frsize.max(1)).min(stat.f_blocks / SHARE_OF_SMALL);
        stat.f_bavail > least.max(stat.f_blocks / SHARE)
    })
}
