//! Hands descriptors to a process whatever its user, root folder or mounts are: over a socket, as SCM_RIGHTS.

use crate::remote::Batch;
use rustix::io::Errno;
use rustix::net::{
    sendmsg, socketpair, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How many descriptors are handed over: engine, session, store.
pub const DESCRIPTORS: usize = 3;

/// A pair of sockets, one end of which the process has.
pub struct Channel {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Channel {
    pub fn new() -> Result<Self, Errno> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok(Self { ours, theirs })
    }

    /// The process's end, to be inherited under the same number.
    pub fn theirs(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    pub fn ours(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

/// Sends the descriptors; they wait in the socket until the process receives them.
pub fn send(socket: BorrowedFd<'_>, descriptors: [BorrowedFd<'_>; DESCRIPTORS]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "the buffer has room for them");
    sendmsg(socket, &[IoSlice::new(b"o")], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Adds a call that receives the descriptors; returns the addresses of the words that will hold their numbers.
pub fn receive(batch: &mut Batch, socket: i32) -> [u64; DESCRIPTORS] {
    let header = std::mem::size_of::<libc::cmsghdr>() as u64;
    let control_len = header + 8 * (DESCRIPTORS as u64).div_ceil(2);
    let byte = batch.data(&[0; 8]);
    let vector = batch.data(bytemuck::bytes_of(&[byte, 1]));
    // All ones is no descriptor: that is what the words hold if nothing is received.
    let control = batch.data(&vec![0xff; control_len as usize]);
    // struct msghdr: name, its length, vector, its length, control, its length, flags.
    let message = batch.data(bytemuck::bytes_of(&[0, 0, vector, 1, control, control_len, 0]));
    batch.call(libc::SYS_recvmsg, &[socket as u64, message, libc::MSG_CMSG_CLOEXEC as u64]);
    std::array::from_fn(|i| control + header + 4 * i as u64)
}
