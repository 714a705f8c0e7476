//! What sockets and files say of themselves when they are asked, where a call that changes it answers otherwise the second time.

use crate::dispatch::Call;
use crate::sys::{nr, syscall};
use crate::user;

const F_GET_SEALS: u64 = 1034;

const SOL_IP: u64 = 0;
const SOL_SOCKET: u64 = 1;
const SO_GET_FILTER: u64 = 26;
const SO_DETACH_FILTER: u64 = 27;
const IP_ADD_MEMBERSHIP: u64 = 35;
const IP_DROP_SOURCE_MEMBERSHIP: u64 = 40;
const IP_MSFILTER: u64 = 41;
const MCAST_MSFILTER: u64 = 48;
const IPV6_JOIN_GROUP: u64 = 20;
const IPV6_LEAVE_GROUP: u64 = 21;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// The seals of a file in memory.
pub fn seals(fd: i32) -> u64 {
    // SAFETY: no effect.
    unsafe { syscall!(nr::FCNTL, fd, F_GET_SEALS) as u64 }
}

/// A checksum of what an option is now.
pub fn option(call: &Call) -> u64 {
    let [fd, ..] = call.args;
    let (level, option) = which(call);
    let (asked, room) = match (level, option) {
        // Its length is that of a program, in instructions; with 0, only how long the program is is told.
        (SOL_SOCKET, SO_DETACH_FILTER) => (SO_GET_FILTER, 0u32),
        _ => (option, 64),
    };
    let (mut value, mut len) = ([0u8; 64], room);
    // SAFETY: the kernel writes at most `room` bytes and the length.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, level, asked, value.as_mut_ptr(), &raw mut len) };
    let answer = [r as u64, u64::from(len)];
    super::witness::checksum(bytemuck::bytes_of(&answer).iter().chain(&value))
}

/// Level and option of a call, which are ints.
fn which(call: &Call) -> (u64, u64) {
    (call.args[1] as u32 as u64, call.args[2] as u32 as u64)
}

/// What a socket has to do with the multicast group that the call names: 0 if it is no member, or else its mode and the number of sources
/// that it knows there.
pub fn membership(call: &Call) -> u64 {
    filter(call).unwrap_or(0)
}

fn filter(call: &Call) -> Option<u64> {
    let (level, option) = which(call);
    let [.., value, len, _] = call.args;
    if level == SOL_IP && (IP_ADD_MEMBERSHIP..=IP_DROP_SOURCE_MEMBERSHIP).contains(&option) {
        let [group, address] = user::read::<[u32; 2]>(value)?;
        let names_interface = option <= IP_ADD_MEMBERSHIP + 1 && len >= 12;
        let interface = if names_interface { user::read::<u32>(value + 8)? } else { 0 };
        return match interface {
            0 => by_address(call, group, address),
            interface => by_interface(call, interface, &[AF_INET, group]),
        };
    }
    if matches!(option, IPV6_JOIN_GROUP | IPV6_LEAVE_GROUP) {
        let [a, b, c, d, interface] = user::read::<[u32; 5]>(value)?;
        return by_interface(call, interface, &[AF_INET6, 0, a, b, c, d]);
    }
    // A number, as many bytes that mean nothing, and a socket address.
    let interface = user::read::<u32>(value)?;
    let address = user::read::<[u32; 8]>(value + 8)?;
    match (level, interface) {
        // Of these the kernel looks for no interface itself.
        (SOL_IP, 0) => by_address(call, address[1], 0),
        _ => by_interface(call, interface, &address),
    }
}

/// By the interface's own address, or none: `struct ip_msfilter`.
fn by_address(call: &Call, group: u32, interface: u32) -> Option<u64> {
    let (mut filter, mut len) = ([group, interface, 0, 0], 16u32);
    // SAFETY: with no room for sources the kernel writes these four words and the length.
    let r = unsafe { syscall!(nr::GETSOCKOPT, call.fd(), SOL_IP, IP_MSFILTER, filter.as_mut_ptr(), &raw mut len) };
    (r == 0).then(|| told(filter[2], filter[3]))
}

/// By the interface's number: `struct group_filter`.
fn by_interface(call: &Call, interface: u32, address: &[u32]) -> Option<u64> {
    let (mut filter, mut len) = ([0u32; 36], 144u32);
    filter[0] = interface;
    filter[2..2 + address.len()].copy_from_slice(address);
    // SAFETY: with no room for sources the kernel writes these 36 words and the length.
    let r =
        unsafe { syscall!(nr::GETSOCKOPT, call.fd(), call.args[1], MCAST_MSFILTER, filter.as_mut_ptr(), &raw mut len) };
    (r == 0).then(|| told(filter[34], filter[35]))
}

fn told(mode: u32, sources: u32) -> u64 {
    1 + (u64::from(sources) << 1 | u64::from(mode & 1))
}
