//! What the kernel says of a connection: how much was sent there, and whether somebody else began it.

use crate::descriptors::Descriptors;
use crate::sys::{nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;

const SOL_SOCKET: u64 = 1;
const SO_ACCEPTCONN: u64 = 30;
const SO_PROTOCOL: u64 = 38;
const IPPROTO_TCP: u64 = 6;
const TCP_INFO: u64 = 11;
const TCP_ULP: u64 = 31;
const SIOCOUTQ: u64 = 0x5411;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// Where `struct tcp_info` has the bytes that were acknowledged.
const BYTES_ACKED: usize = 120;
/// TCP_ESTABLISHED and TCP_CLOSE_WAIT: before and after, what belongs to the connection itself counts as a byte.
const OPEN: [u8; 2] = [1, 8];
/// How often the two counts are asked for until no acknowledgement came between them.
const LOOKS: u32 = 16;

/// All that the program has ever sent there.
pub fn sent(fd: i32) -> Option<u64> {
    let (mut before, _) = acknowledged(fd)?;
    for _ in 0..LOOKS {
        let mut queued = 0i32;
        // SAFETY: writes one int.
        if unsafe { syscall!(nr::IOCTL, fd, SIOCOUTQ, &raw mut queued) } != 0 {
            return None;
        }
        let (after, _) = acknowledged(fd)?;
        if after == before {
            return Some(after + queued.max(0) as u64);
        }
        before = after;
    }
    None
}

/// Bytes of the program's that the peer has, and the connection's state.
fn acknowledged(fd: i32) -> Option<(u64, u8)> {
    let (mut info, mut len) = ([0u64; 32], 256u32);
    // SAFETY: getsockopt writes at most as many bytes as the length says.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, IPPROTO_TCP, TCP_INFO, info.as_mut_ptr(), &raw mut len) };
    (r == 0 && len as usize >= BYTES_ACKED + 8).then(|| (info[BYTES_ACKED / 8], info[0] as u8))
}

/// TCP that is open, and nothing between the program and it that changes the number of bytes.
pub fn is_plain(fd: i32) -> bool {
    let (mut layer, mut len) = ([0u8; 16], 16u32);
    // SAFETY: getsockopt writes at most as many bytes as the length says.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, IPPROTO_TCP, TCP_ULP, layer.as_mut_ptr(), &raw mut len) };
    option(fd, SO_PROTOCOL) == Some(IPPROTO_TCP as u32)
        && r == 0
        && len == 0
        && acknowledged(fd).is_some_and(|(_, state)| OPEN.contains(&state))
}

fn option(fd: i32, name: u64) -> Option<u32> {
    let (mut value, mut len) = (0u32, 4u32);
    // SAFETY: getsockopt writes at most as many bytes as the length says.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, SOL_SOCKET, name, &raw mut value, &raw mut len) };
    (r == 0).then_some(value)
}

fn port(fd: i32) -> Option<u16> {
    let (mut name, mut len) = ([0u16; 16], 32u32);
    // SAFETY: getsockname writes at most as many bytes as the length says.
    let r = unsafe { syscall!(nr::GETSOCKNAME, fd, name.as_mut_ptr(), &raw mut len) };
    (r == 0 && matches!(name[0], AF_INET | AF_INET6)).then_some(name[1])
}

/// Ports at which the program listens.
pub struct Ports {
    ports: [u16; Ports::MOST],
    count: usize,
    misses: u32,
}

impl Ports {
    const MOST: usize = 16;
    /// So often is one not among them until they are looked for again.
    const PATIENCE: u32 = 256;

    pub const fn new() -> Ports {
        Ports { ports: [0; Ports::MOST], count: 0, misses: 0 }
    }

    /// Was the connection made by somebody else, who asks for something there?
    pub fn lead_to(&mut self, fds: &mut Descriptors, fd: i32) -> bool {
        let Some(port) = port(fd) else { return false };
        if self.have(port) {
            return true;
        }
        if self.misses == 0 {
            self.look(fds);
        }
        self.misses = (self.misses + 1) % Ports::PATIENCE;
        self.have(port)
    }

    fn have(&self, port: u16) -> bool {
        self.ports[..self.count].contains(&port)
    }

    fn look(&mut self, fds: &mut Descriptors) {
        self.count = 0;
        for fd in 0..fds.end() {
            let listens = fds.is_open(fd) && fds.kind(fd) == kind::SOCKET && option(fd, SO_ACCEPTCONN) == Some(1);
            if let (true, Some(port), Some(place)) = (listens, port(fd), self.ports.get_mut(self.count)) {
                *place = port;
                self.count += 1;
            }
        }
    }
}
