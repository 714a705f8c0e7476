//! What went over connections: asked of the kernel by sock_diag(7), which `ss` uses, too.

use outlast_interfaces::net::Traffic;
use rustix::net::{netlink, recv, send, socket_with, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const TCP: u8 = 6;
/// The attribute that is a `struct tcp_info`; and the bit that asks for it.
const INFO: u16 = 2;
const HEADER: usize = 16;
/// Length of `struct inet_diag_msg`, and where in it the socket's inode is.
const MESSAGE: usize = 72;
const INODE: usize = 68;
/// Where in `struct tcp_info` what is asked for is.
const RETRANSMITS: usize = 100;
const ACKNOWLEDGED: usize = 120;
const RECEIVED: usize = 128;

/// Of connections in our network namespace, those of these sockets, by inode. What the kernel does not tell is missing.
pub fn traffic(sockets: &BTreeSet<u64>) -> BTreeMap<u64, Traffic> {
    let mut all = BTreeMap::new();
    for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
        let _ = ask(family, &mut |inode, traffic| {
            if sockets.contains(&inode) {
                all.insert(inode, traffic);
            }
        });
    }
    all
}

fn ask(family: u8, take: &mut dyn FnMut(u64, Traffic)) -> Option<()> {
    let netlink: OwnedFd =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG)).ok()?;
    send(&netlink, &request(family), SendFlags::empty()).ok()?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        // The kernel has its answer ready when it has taken the request, and its further parts when one is read.
        let (length, _) = recv(&netlink, &mut buffer[..], RecvFlags::DONTWAIT).ok()?;
        if !read(buffer.get(..length)?, take) {
            return Some(());
        }
    }
}

/// For all TCP sockets of a family, with their `tcp_info`.
fn request(family: u8) -> Vec<u8> {
    let mut request = Vec::with_capacity(HEADER + 56);
    request.extend(((HEADER + 56) as u32).to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family, TCP, 1 << (INFO - 1), 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([0; 48]);
    request
}

/// Goes through messages; false: there are no more to come.
fn read(mut messages: &[u8], take: &mut dyn FnMut(u64, Traffic)) -> bool {
    while let (Some(length), Some(kind)) = (u32_at(messages, 0), u16_at(messages, 4)) {
        let length = length as usize;
        if kind == DONE || kind == ERROR || length < HEADER {
            return false;
        }
        if let Some((inode, traffic)) = messages.get(HEADER..length).and_then(one) {
            take(inode, traffic);
        }
        messages = messages.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// A socket's message: a structure, and attributes after it.
fn one(message: &[u8]) -> Option<(u64, Traffic)> {
    let inode = u32_at(message, INODE)?.into();
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let attribute = attributes.get(4..length)?;
        if kind == INFO {
            let traffic = Traffic {
                sent: u64_at(attribute, ACKNOWLEDGED)?,
                received: u64_at(attribute, RECEIVED)?,
                retransmits: u32_at(attribute, RETRANSMITS)?.into(),
            };
            return Some((inode, traffic));
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..at + N)?.try_into().ok()
}

fn u16_at(of: &[u8], at: usize) -> Option<u16> {
    bytes(of, at).map(u16::from_ne_bytes)
}

fn u32_at(of: &[u8], at: usize) -> Option<u32> {
    bytes(of, at).map(u32::from_ne_bytes)
}

fn u64_at(of: &[u8], at: usize) -> Option<u64> {
    bytes(of, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_cut_short_or_lie_about_their_length_end_nothing_but_themselves() {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as u8
        };
        for _ in 0..20_000 {
            let length = usize::from(random()) * 2;
            let mut message: Vec<u8> = (0..length).map(|_| random()).collect();
            // Often a plausible beginning.
            if length > 100 && random() % 2 == 0 {
                message[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                message[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
                message[88..92].copy_from_slice(&[random() % 16, 0, 2, 0]);
            }
            read(&message, &mut |_, _| ());
        }
    }
}
