//! Datagrams: buffers, addresses and control data.

use crate::arena::{bytes, Arena};
use crate::probe::probes;
use crate::raw::must;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

const SOL_SOCKET: u64 = 1;
const SO_TIMESTAMP: u64 = 29;
const MSG_DONTWAIT: u64 = 0x40;
const NAME: usize = 100;
const CONTROL: usize = 200;

/// A socket that was sent two datagrams and stamps them with the time.
fn receiver(arena: &mut Arena) -> u64 {
    let (receiver, sender) = pair();
    for datagram in ["twenty characters...", "nineteen characters"] {
        sender.send(datagram.as_bytes()).expect("loopback");
    }
    let fd = receiver.as_raw_fd() as u64;
    let on = arena.input(&1_u32.to_ne_bytes());
    must("setsockopt", [fd, SOL_SOCKET, SO_TIMESTAMP, on, 4]);
    arena.keep((receiver, sender));
    fd
}

fn pair() -> (UdpSocket, UdpSocket) {
    let [receiver, sender] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
    sender.connect(receiver.local_addr().expect("its address")).expect("loopback");
    (receiver, sender)
}

/// A `struct msghdr` with two buffers, and all it points to.
fn header(arena: &mut Arena) -> Vec<u8> {
    let (name, control) = (arena.room(NAME), arena.room(CONTROL));
    let (one, two) = (arena.room(5), arena.room(40));
    let buffers = arena.words(&[one, 5, two, 40]);
    bytes(&[name, NAME as u64, buffers, 2, control, CONTROL as u64, 0])
}

/// Two `struct mmsghdr`.
fn headers(arena: &mut Arena) -> Vec<u8> {
    [(); 2].iter().flat_map(|()| [header(arena), vec![0; 8]].concat()).collect()
}

probes! {
    recvfrom Success arena => {
        let fd = receiver(arena);
        vec![(0, fd), (2, 100), (3, 0), (5, arena.put(5, &100_u32.to_ne_bytes()))]
    };
    recvmsg Success arena => {
        let fd = receiver(arena);
        let header = header(arena);
        vec![(0, fd), (1, arena.put(1, &header)), (2, 0)]
    };
    recvmmsg Success arena => {
        let fd = receiver(arena);
        let headers = headers(arena);
        vec![(0, fd), (1, arena.put(1, &headers)), (2, 2), (3, MSG_DONTWAIT), (4, arena.put(4, &bytes(&[9, 9])))]
    };
    sendmmsg Success arena => {
        let (receiver, sender) = pair();
        let fd = sender.as_raw_fd() as u64;
        arena.keep((receiver, sender));
        let part = arena.text("datagram");
        let buffers = arena.words(&[part, 8]);
        let header = [bytes(&[0, 0, buffers, 1, 0, 0, 0]), vec![0; 8]].concat();
        vec![(0, fd), (1, arena.put(1, &[&header[..], &header].concat())), (2, 2), (3, 0)]
    };
}
