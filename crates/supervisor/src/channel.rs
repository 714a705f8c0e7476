//! Hands descriptors to a process whatever its user, root folder or mounts are: over a socket, as SCM_RIGHTS.

use crate::remote::Batch;
use libc::pid_t;
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    accept_with, bind, getsockname, listen, sendmsg, socket_with, socketpair, AddressFamily, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

/// How many descriptors are handed over at most: engine, session, store, three of a fault list, and a socket.
pub const DESCRIPTORS: usize = 7;

/// A pair of sockets, one end of which the process has.
pub struct Channel {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Channel {
    /// The process's end has a number that is at least `above`.
    pub fn new(above: RawFd) -> Result<Self, Errno> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let theirs = if above > 0 { fcntl_dupfd_cloexec(&theirs, above)? } else { theirs };
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

/// A socket that one process shall connect to.
pub struct Listener {
    socket: OwnedFd,
    address: Vec<u8>,
}

impl Listener {
    /// Listens at an address that the kernel chooses.
    pub fn new() -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrUnix::new_unnamed())?;
        listen(&socket, 1)?;
        let name = SocketAddrUnix::try_from(getsockname(&socket)?)?;
        let name = name.abstract_name().ok_or(Errno::ADDRNOTAVAIL)?;
        // struct sockaddr_un: the family, and a name that begins with a zero.
        let family = (libc::AF_UNIX as u16).to_ne_bytes();
        let address = family.into_iter().chain([0]).chain(name.iter().copied()).collect();
        Ok(Self { socket, address })
    }

    /// The address as connect wants it.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// The connection of this process, which has connected already; anybody else's is dropped.
    pub fn accept(&self, pid: pid_t) -> Result<OwnedFd, Errno> {
        loop {
            let connection = accept_with(&self.socket, SocketFlags::CLOEXEC)?;
            if socket_peercred(&connection)?.pid.as_raw_nonzero().get() == pid {
                return Ok(connection);
            }
        }
    }
}

/// Sends the descriptors; they wait in the socket until the process receives them.
pub fn send(socket: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "the buffer has room for them");
    sendmsg(socket, &[IoSlice::new(b"o")], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Adds a call that receives so many descriptors; returns the addresses of the words that will hold their numbers.
pub fn receive(batch: &mut Batch, socket: i32, count: usize) -> Vec<u64> {
    let header = std::mem::size_of::<libc::cmsghdr>() as u64;
    let control_len = header + 8 * (count as u64).div_ceil(2);
    let byte = batch.data(&[0; 8]);
    let vector = batch.data(bytemuck::bytes_of(&[byte, 1]));
    // All ones is no descriptor: that is what the words hold if nothing is received.
    let control = batch.data(&vec![0xff; control_len as usize]);
    // struct msghdr: name, its length, vector, its length, control, its length, flags.
    let message = batch.data(bytemuck::bytes_of(&[0, 0, vector, 1, control, control_len, 0]));
    batch.call(libc::SYS_recvmsg, &[socket as u64, message, libc::MSG_CMSG_CLOEXEC as u64]);
    (0..count as u64).map(|i| control + header + 4 * i).collect()
}
