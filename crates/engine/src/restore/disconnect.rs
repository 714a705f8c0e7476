//! Connections of a program that has gone back to an older state: what was read since is not read again, and what was sent is sent again,
//! so that neither side would understand the other any more. Both find them closed, as after a crash, and may connect anew.

use crate::noted::witness::is_connected;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SHUT_RDWR: u64 = 2;
/// Length of a Unix socket's address that has no name.
const NAMELESS: u32 = 2;
/// Standard streams are those of whoever began the program, and go on.
const FIRST: i32 = 3;

/// Shuts down all connections with whoever is outside. Pairs of sockets go on, as do sockets of single messages and listening ones.
pub fn all(e: &mut Engine) {
    for fd in FIRST..e.fds.end() {
        if e.fds.is_open(fd) && e.fds.kind(fd) == kind::SOCKET && is_connected(fd) && is_with_others(fd) {
            // SAFETY: has no effect on memory.
            unsafe { syscall!(nr::SHUTDOWN, fd, SHUT_RDWR) };
        }
    }
}

/// Both ends of a pair are nameless, and no program comes by one later but from this one.
fn is_with_others(fd: i32) -> bool {
    [nr::GETPEERNAME, nr::GETSOCKNAME].into_iter().filter_map(|call| address(fd, call)).any(
        |(family, len)| match family {
            AF_INET | AF_INET6 => true,
            AF_UNIX => len > NAMELESS,
            _ => false,
        },
    )
}

/// Family and length of one of a socket's two addresses. `None`: it has none.
fn address(fd: i32, call: u64) -> Option<(u16, u32)> {
    let (mut name, mut len) = ([0u16; 64], 128u32);
    // SAFETY: the kernel writes at most 128 bytes and the length.
    let r = unsafe { syscall!(call, fd, name.as_mut_ptr(), &raw mut len) };
    (r == 0).then_some((name[0], len))
}
