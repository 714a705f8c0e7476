//! Open files that come with a call or its reply: through a socket beside the memory of the channel.
//!
//! A file is sent before the word that says that it is there, under the number of its slot and a token that no other call
//! there has. So whoever waits for it finds it, what a dead call has left is known as such, and no more than one file a slot
//! is ever kept.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use crate::layout::SLOTS;

pub struct Passage {
    socket: OwnedFd,
    /// Arrived, not asked for yet.
    kept: Mutex<[Option<(u64, OwnedFd)>; SLOTS]>,
}

/// Slot and token, as they travel.
type Label = [u64; 2];

/// Room for one descriptor; the kernel's alignment may make it two.
#[repr(C, align(8))]
struct Control([u8; 24]);

impl Passage {
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, kept: Mutex::new(std::array::from_fn(|_| None)) }
    }

    /// Its two ends.
    pub fn pair() -> io::Result<[OwnedFd; 2]> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: fills a live array; what it fills in is new and ours.
        unsafe {
            match libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) {
                0 => Ok(ends.map(|end| OwnedFd::from_raw_fd(end))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Never waits: an error where the other side does not take what is sent.
    pub fn send(&self, slot: usize, token: u64, file: BorrowedFd<'_>) -> io::Result<()> {
        let mut label: Label = [slot as u64, token];
        let mut control = Control([0; 24]);
        let mut part = libc::iovec { iov_base: label.as_mut_ptr().cast(), iov_len: size_of::<Label>() };
        // SAFETY: all that the message points to lives until it is sent; the control message fits its buffer.
        let sent = unsafe {
            let message = message(&mut part, &mut control);
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(file.as_raw_fd());
            libc::sendmsg(self.socket.as_raw_fd(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The file that was sent for that slot under that token.
    pub fn take(&self, slot: usize, token: u64) -> Option<OwnedFd> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((label, file)) = self.receive() {
            // The other side may say anything: a slot that is none has no file.
            if let (Some(place), Some(file)) = (kept.get_mut(label[0] as usize), file) {
                *place = Some((label[1], file));
            }
        }
        let place = kept.get_mut(slot)?;
        match place {
            Some((known, _)) if *known == token => place.take().map(|(_, file)| file),
            _ => None,
        }
    }

    fn receive(&self) -> Option<(Label, Option<OwnedFd>)> {
        let mut label: Label = [u64::MAX; 2];
        let mut control = Control([0; 24]);
        let mut part = libc::iovec { iov_base: label.as_mut_ptr().cast(), iov_len: size_of::<Label>() };
        // SAFETY: as for `send`; descriptors that the kernel puts there are new and ours, each owned once.
        unsafe {
            let mut message = message(&mut part, &mut control);
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            if libc::recvmsg(self.socket.as_raw_fd(), &mut message, flags) <= 0 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(&message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return Some((label, None));
            }
            let count = ((*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
            let first = libc::CMSG_DATA(header).cast::<RawFd>();
            let mut all = (0..count).map(|at| OwnedFd::from_raw_fd(first.add(at).read_unaligned()));
            let file = all.next();
            all.for_each(drop);
            Some((label, file))
        }
    }

    /// Nobody holds the other end any more.
    pub fn abandoned(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live entry.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & libc::POLLHUP != 0 }
    }
}

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zero is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    message
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::Passage;

    fn file(text: &str) -> File {
        // SAFETY: a call with a valid string; the descriptor is new and ours.
        let fd = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0);
        // SAFETY: as above.
        let mut file = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(fd) };
        file.write_all(text.as_bytes()).expect("room");
        file
    }

    fn text(fd: std::os::fd::OwnedFd) -> String {
        let mut file = File::from(fd);
        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn each_slot_gets_its_own_file_and_none_of_a_call_before() {
        let [here, there] = Passage::pair().expect("two ends").map(Passage::new);
        here.send(3, 10, file("of a dead call").as_fd()).expect("sent");
        here.send(3, 11, file("three").as_fd()).expect("sent");
        here.send(5, 12, file("five").as_fd()).expect("sent");
        here.send(1_000, 13, file("of no slot").as_fd()).expect("sent");
        assert_eq!(there.take(5, 12).map(text).as_deref(), Some("five"));
        assert!(there.take(3, 10).is_none());
        assert_eq!(there.take(3, 11).map(text).as_deref(), Some("three"));
        assert!(there.take(3, 11).is_none() && there.take(1_000, 13).is_none());
    }

    #[test]
    fn who_floods_the_other_side_is_told_and_who_is_gone_is_known_to_be() {
        let [here, there] = Passage::pair().expect("two ends").map(Passage::new);
        let one = file("one");
        let sent = (0..100_000).take_while(|token| here.send(0, *token, one.as_fd()).is_ok()).count() as u64;
        assert!((1..100_000).contains(&sent));
        assert_eq!(there.take(0, sent - 1).map(text).as_deref(), Some("one"));
        assert!(!here.abandoned());
        drop(there);
        assert!(here.abandoned() && here.send(0, 1, one.as_fd()).is_err());
    }
}
