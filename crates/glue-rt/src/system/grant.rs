//! Rights to call components, and how programs are given them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::channel::Channel;

/// The right to call a component, as one client: to be opened here, or to be given to a program.
pub struct Grant {
    pub(super) memory: OwnedFd,
    pub(super) doorbell: OwnedFd,
    pub(super) socket: OwnedFd,
}

impl Grant {
    pub fn open(self) -> io::Result<Channel> {
        Channel::open(self.memory, self.doorbell, self.socket)
    }

    /// The same right once more, for whoever comes after its client when that is dead: who opens it then finds nothing open, and nothing
    /// that was asked for happens any more.
    pub fn again(&self) -> io::Result<Self> {
        let [memory, doorbell, socket] = [&self.memory, &self.doorbell, &self.socket].map(OwnedFd::try_clone);
        Ok(Self { memory: memory?, doorbell: doorbell?, socket: socket? })
    }

    /// Gives the right to a program that is about to be started, which opens it by `Grant::inherited(name)`.
    pub fn pass(self, command: &mut Command, name: &str) {
        let numbers = [&self.memory, &self.doorbell, &self.socket].map(|fd| fd.as_raw_fd().to_string());
        command.env(format!("OUTLAST_GRANT_{name}"), numbers.join(","));
        // SAFETY: between fork and exec only system calls are made; the grant lives in the closure.
        unsafe {
            command.pre_exec(move || {
                for fd in [&self.memory, &self.doorbell, &self.socket] {
                    libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
    }

    /// What this program was given under that name.
    pub fn inherited(name: &str) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::PermissionDenied, format!("no channel to `{name}` was granted"));
        let list = std::env::var(format!("OUTLAST_GRANT_{name}")).map_err(|_| missing())?;
        let [memory, doorbell, socket] = list.split(',').collect::<Vec<_>>().try_into().map_err(|_| missing())?;
        let open = |number: &str| {
            let number: RawFd = number.parse().map_err(|_| missing())?;
            // SAFETY: the number was passed for this; a copy is made, so that nothing of others is closed.
            unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
        };
        Ok(Self { memory: open(memory)?, doorbell: open(doorbell)?, socket: open(socket)? })
    }
}
