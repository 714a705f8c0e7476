//! What waits in a socket of a pair, looked at without taking it.

use crate::sys::{nr, syscall};

pub const STREAM: u64 = 1;
const SEQPACKET: u64 = 5;
const SOL_SOCKET: u64 = 1;
const SO_PEEK_OFF: u64 = 42;
const FIONREAD: u64 = 0x541b;
/// MSG_PEEK, MSG_DONTWAIT, and MSG_TRUNC: the length of a message that does not fit.
const LOOK: u64 = 2 | 0x40;
const TRUNC: u64 = 0x20;

/// Bytes of the length before each message.
pub const HEAD: usize = 4;

/// Puts the bytes that wait in a stream socket into `buf`: how many. `None`: there are more, or such as come with descriptors.
pub fn stream(socket: i32, buf: &mut [u8]) -> Option<usize> {
    let mut waiting = 0i32;
    // SAFETY: the kernel writes four bytes, and at most as many as there is room for.
    let n = unsafe {
        syscall!(nr::IOCTL, socket, FIONREAD, &raw mut waiting);
        syscall!(nr::RECVFROM, socket, buf.as_mut_ptr(), buf.len(), LOOK, 0, 0)
    };
    (n.max(0) == waiting.into()).then_some(waiting as usize)
}

/// The same for messages, each after its length: how many bytes, and messages.
pub fn each(socket: i32, kind: u64, buf: &mut [u8]) -> Option<(usize, u32)> {
    let (mut old, mut len) = (-1i32, 4u32);
    // SAFETY: the kernel writes four bytes.
    unsafe { syscall!(nr::GETSOCKOPT, socket, SOL_SOCKET, SO_PEEK_OFF, &raw mut old, &raw mut len) };
    look_from(socket, 0);
    let (mut at, mut count) = (0, 0);
    let whole = loop {
        let Some((head, room)) = buf[at..].split_at_mut_checked(HEAD) else { break false };
        // SAFETY: at most as many bytes as there is room for.
        let n = unsafe { syscall!(nr::RECVFROM, socket, room.as_mut_ptr(), room.len(), LOOK | TRUNC, 0, 0) };
        // An empty message, or the end, which comes for ever.
        if n < 0 || n == 0 && kind == SEQPACKET {
            break true;
        }
        if n as usize > room.len() {
            break false;
        }
        head.copy_from_slice(&(n as u32).to_ne_bytes());
        (at, count) = (at + HEAD + n as usize, count + 1);
    };
    look_from(socket, old);
    whole.then_some((at, count))
}

/// Where the next look begins; -1: at the first message.
fn look_from(socket: i32, offset: i32) {
    // SAFETY: the kernel reads four bytes.
    unsafe { syscall!(nr::SETSOCKOPT, socket, SOL_SOCKET, SO_PEEK_OFF, &raw const offset, 4) };
}

/// Sends what such a look has found; false: not all.
pub fn send(socket: i64, messages: u32, mut bytes: &[u8]) -> bool {
    const DONTWAIT: u64 = 0x40;
    const NOSIGNAL: u64 = 0x4000;
    // SAFETY: the kernel reads the bytes.
    let send =
        |bytes: &[u8]| unsafe { syscall!(nr::SENDTO, socket, bytes.as_ptr(), bytes.len(), DONTWAIT | NOSIGNAL, 0, 0) };
    for _ in 0..messages {
        let Some((&head, rest)) = bytes.split_first_chunk::<HEAD>() else { return false };
        let Some((message, rest)) = rest.split_at_checked(u32::from_ne_bytes(head) as usize) else { return false };
        if send(message) != message.len() as i64 {
            return false;
        }
        bytes = rest;
    }
    while messages == 0 && !bytes.is_empty() {
        match send(bytes) {
            n @ 1.. => bytes = bytes.get(n as usize..).unwrap_or(&[]),
            _ => return false,
        }
    }
    true
}
