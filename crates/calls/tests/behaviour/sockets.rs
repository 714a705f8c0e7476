//! Addresses and options of sockets, and new connections.

use crate::arena::Arena;
use crate::probe::probes;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

const SOL_SOCKET: u64 = 1;
const SO_TYPE: u64 = 3;

/// A listener with a connection waiting, and its client.
fn connection(arena: &mut Arena) -> (u64, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("its address")).expect("loopback");
    let fds = (listener.as_raw_fd() as u64, client.as_raw_fd() as u64);
    arena.keep((listener, client));
    fds
}

fn room(arena: &mut Arena, arg: usize, len: u32) -> (usize, u64) {
    (arg, arena.put(arg, &len.to_ne_bytes()))
}

probes! {
    getsockname Success arena => vec![(0, connection(arena).0), room(arena, 2, 100)];
    getsockname_of_small_room(getsockname) Success arena => vec![(0, connection(arena).0), room(arena, 2, 5)];
    getpeername Success arena => vec![(0, connection(arena).1), room(arena, 2, 100)];
    getsockopt Success arena => vec![(0, connection(arena).1), (1, SOL_SOCKET), (2, SO_TYPE), room(arena, 4, 50)];
    accept Success arena => vec![(0, connection(arena).0), room(arena, 2, 100)];
    accept4 Success arena => vec![(0, connection(arena).0), room(arena, 2, 100), (3, 0)];
}
