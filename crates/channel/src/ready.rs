//! Which of all connections have something to read: one read of each, whenever one of them has something, is what many nodes would cost.

use rustix::event::{PollFd, PollFlags};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

#[derive(Default)]
pub struct Ready(BTreeSet<RawFd>);

impl Ready {
    /// As the kernel has answered.
    pub fn of(files: &[PollFd<'_>]) -> Self {
        let has = |file: &&PollFd<'_>| file.revents().intersects(!PollFlags::OUT);
        Self(files.iter().filter(has).map(|file| file.as_fd().as_raw_fd()).collect())
    }

    pub fn has(&self, file: BorrowedFd<'_>) -> bool {
        self.0.contains(&file.as_raw_fd())
    }
}
