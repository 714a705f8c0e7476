//! A process in front of the supervisor of a tree, for whoever started this one, a service manager say.
//!
//! A daemon leaves its first process behind, and whoever waits for that is to see it end. But a process whose parent has ended gets another
//! one, pid 1 mostly, which takes it for dead when it dies, whatever comes back. So the supervisor, whose children all processes of the tree
//! are, does not end then: the process in front of it does, which does nothing else but pass signals on.

use crate::departure::depart;
use crate::end::End;
use crate::signals::{Received, Signals};
use libc::pid_t;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{recv, send, socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

/// What is told: one of these, and the status or the signal.
const EXITED: u8 = 0;
const KILLED: u8 = 1;

/// The supervisor's end of it. Dropped, the process in front ends as the supervisor does.
#[derive(Debug)]
pub struct Front(OwnedFd);

impl Front {
    /// Has this process be in front of a child of its own, in which alone this returns.
    ///
    /// # Safety
    /// There is no other thread.
    pub unsafe fn stand() -> Result<Front, Errno> {
        let (front, behind) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let signals = Signals::block()?;
        let child = libc::fork();
        if child > 0 {
            drop(behind);
            depart(await_end(&signals, front, child));
        }
        let error = std::io::Error::last_os_error();
        signals.inherited().restore();
        match child {
            0 => Ok(Front(behind)),
            _ => Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)),
        }
    }

    /// The process in front ends so, and whoever waits for it waits no longer.
    pub fn end(self, end: End) {
        let (kind, number) = match end {
            End::Exited(status) => (EXITED, status),
            End::Killed(signal) => (KILLED, signal),
        };
        // One that was killed has nobody who waits; and a signal for that would be passed on.
        let _ = send(&self.0, &[kind, number as u8], SendFlags::NOSIGNAL);
    }
}

/// How the program, or its supervisor, has ended.
fn await_end(signals: &Signals, told: OwnedFd, child: pid_t) -> End {
    // Nobody tells anything any more once it has become another outlast; then its own end is what counts.
    let mut told = Some(told);
    loop {
        let signal = PollFd::from_borrowed_fd(signals.file(), PollFlags::IN);
        let mut awaited: Vec<_> = told.iter().map(|told| PollFd::new(told, PollFlags::IN)).chain([signal]).collect();
        let _ = poll(&mut awaited, None);
        while let Some(Received { signal, code, .. }) = signals.next() {
            // What the kernel sends to all of a group the supervisor has got itself.
            if signal != libc::SIGCHLD && code <= 0 {
                // SAFETY: plain system call; the child is not reaped.
                unsafe { libc::kill(child, signal) };
            }
        }
        match told.as_ref().map(end_told) {
            Some(Ok(Some(end))) => return end,
            Some(Ok(None)) => told = None,
            Some(Err(_)) | None => (),
        }
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            if let Some(end) = End::of(status) {
                return end;
            }
        }
    }
}

/// None: nobody will tell.
fn end_told(told: &OwnedFd) -> Result<Option<End>, Errno> {
    let mut end = [0; 2];
    let (_, len) = recv(told, &mut end, RecvFlags::DONTWAIT)?;
    let end = match end {
        [EXITED, status] => End::Exited(status.into()),
        [_, signal] => End::Killed(signal.into()),
    };
    Ok((len == 2).then_some(end))
}
