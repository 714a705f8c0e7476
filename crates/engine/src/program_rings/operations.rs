//! What an entry stands for: a system call, or something that the engine does itself.

use super::completing::sqe_flag;
use super::layout::{Entry, Request};
use super::op;
use super::queues::Ring;
use super::{files, register};
use crate::descriptors::classify;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;

pub const POLLIN: u32 = 1;
pub const POLLOUT: u32 = 4;
const MSG_NOSIGNAL: u64 = 0x4000;
pub const ACCEPT_MULTISHOT: u16 = 1;
const POLL_FIRST: u16 = 1;
const SYNC_FILE_RANGE: u64 = 277;
const TEE: u64 = 276;
const STATX: u64 = 332;
const RWF_NOWAIT: u32 = 8;
const F_GETPIPE_SZ: u64 = 1032;
const FIONREAD: u64 = 0x541b;

/// Looks, at its submission, whether a request can be made at all, and settles what counts from then on.
pub fn prepare(ring: &Ring, request: &mut Request) -> Result<(), i32> {
    const EINVAL: i32 = err::EINVAL as i32;
    let entry = &request.entry;
    if !op::is_served(entry.opcode) || entry.flags & !sqe_flag::SERVED != 0 || entry.personality != 0 {
        return Err(EINVAL);
    }
    let makes_slots = matches!(entry.opcode, op::ACCEPT | op::OPENAT | op::OPENAT2 | op::SOCKET | op::CLOSE);
    if makes_slots && entry.extra != 0 {
        return Err(EINVAL);
    }
    let is_odd = match entry.opcode {
        op::POLL_ADD => entry.len != 0,
        op::POLL_REMOVE => entry.len != 0,
        op::ACCEPT => entry.ioprio & !ACCEPT_MULTISHOT != 0,
        op::SEND | op::SENDMSG | op::RECV | op::RECVMSG => entry.ioprio & !POLL_FIRST != 0,
        op::FSYNC => entry.op_flags & !1 != 0,
        _ => false,
    };
    if is_odd {
        return Err(EINVAL);
    }
    match entry.opcode {
        op::TIMEOUT | op::LINK_TIMEOUT => super::pending::set_time(ring, request),
        _ => Ok(()),
    }
}

/// The descriptor of a request, `Err` if there is none.
pub fn descriptor(ring: &Ring, request: &Request) -> Result<i32, i32> {
    let entry = &request.entry;
    if let Some(fd) = request.kept.checked_sub(1) {
        return Ok(fd as i32);
    }
    if entry.flags & sqe_flag::FIXED_FILE != 0 {
        return files::file(ring, entry.fd as u32).ok_or(err::EBADF as i32);
    }
    Ok(entry.fd)
}

/// The call that a request is, and what poll(2) has to say of the descriptor before it can be made without waiting; 0: nothing.
pub fn call(e: &mut Engine, ring: &Ring, request: &Request) -> Result<(Call, u32), i32> {
    let n = &request.entry;
    let fd = descriptor(ring, request)?;
    let (fd64, len, flags) = (fd as i64 as u64, n.len as u64, n.op_flags as u64);
    let done = request.done as u64;
    let made = |nr, args| Ok((Call { nr, args }, 0));
    match n.opcode {
        op::READ | op::READ_FIXED | op::READV | op::WRITE | op::WRITE_FIXED | op::WRITEV => {
            if matches!(n.opcode, op::READ_FIXED | op::WRITE_FIXED) && !register::is_in_buffer(ring, n) {
                return Err(err::EFAULT as i32);
            }
            transfer(e, n, fd)
        }
        op::FSYNC => made(if flags & 1 != 0 { FDATASYNC } else { FSYNC }, [fd64, 0, 0, 0, 0, 0]),
        op::SYNC_FILE_RANGE => made(SYNC_FILE_RANGE, [fd64, n.off, len, flags, 0, 0]),
        op::SEND => {
            let (name, name_len) = (n.off, if n.off == 0 { 0 } else { n.extra as u64 & 0xffff });
            let flags = flags | op::MSG_DONTWAIT as u64 | MSG_NOSIGNAL;
            Ok((
                Call { nr: nr::SENDTO, args: [fd64, n.addr + done, len - done.min(len), flags, name, name_len] },
                POLLOUT,
            ))
        }
        op::RECV => {
            let flags = (flags | op::MSG_DONTWAIT as u64) & !(op::MSG_WAITALL as u64);
            Ok((Call { nr: nr::RECVFROM, args: [fd64, n.addr + done, len - done.min(len), flags, 0, 0] }, POLLIN))
        }
        op::SENDMSG => {
            let flags = flags | op::MSG_DONTWAIT as u64 | MSG_NOSIGNAL;
            Ok((Call { nr: nr::SENDMSG, args: [fd64, n.addr, flags, 0, 0, 0] }, POLLOUT))
        }
        op::RECVMSG => {
            let flags = (flags | op::MSG_DONTWAIT as u64) & !(op::MSG_WAITALL as u64);
            Ok((Call { nr: nr::RECVMSG, args: [fd64, n.addr, flags, 0, 0, 0] }, POLLIN))
        }
        op::ACCEPT => Ok((Call { nr: nr::ACCEPT4, args: [fd64, n.addr, n.off, flags, 0, 0] }, POLLIN)),
        op::CONNECT => made(nr::CONNECT, [fd64, n.addr, n.off, 0, 0, 0]),
        op::FALLOCATE => made(nr::FALLOCATE, [fd64, len, n.off, n.addr, 0, 0]),
        op::OPENAT => made(nr::OPENAT, [fd64, n.addr, flags, len, 0, 0]),
        op::OPENAT2 => made(nr::OPENAT2, [fd64, n.addr, n.off, len, 0, 0]),
        op::CLOSE => made(nr::CLOSE, [fd64, 0, 0, 0, 0, 0]),
        op::STATX => made(STATX, [fd64, n.addr, flags, len, n.off, 0]),
        op::FADVISE => made(nr::FADVISE64, [fd64, n.off, len, flags, 0, 0]),
        op::MADVISE => made(nr::MADVISE, [n.addr, len, flags, 0, 0, 0]),
        op::EPOLL_CTL => made(crate::calls::epoll::EPOLL_CTL, [fd64, len, n.off, n.addr, 0, 0]),
        op::SPLICE | op::TEE => splice(e, ring, n, fd),
        op::SHUTDOWN => made(nr::SHUTDOWN, [fd64, len, 0, 0, 0, 0]),
        op::RENAMEAT => made(nr::RENAMEAT2, [fd64, n.addr, n.len as i32 as u64, n.off, flags, 0]),
        op::UNLINKAT => made(nr::UNLINKAT, [fd64, n.addr, flags, 0, 0, 0]),
        op::MKDIRAT => made(nr::MKDIRAT, [fd64, n.addr, len, 0, 0, 0]),
        op::SYMLINKAT => made(nr::SYMLINKAT, [n.addr, fd64, n.off, 0, 0, 0]),
        op::LINKAT => made(nr::LINKAT, [fd64, n.addr, n.len as i32 as u64, n.off, flags, 0]),
        op::SOCKET => made(nr::SOCKET, [fd64, n.off, len, 0, 0, 0]),
        op::FTRUNCATE => made(nr::FTRUNCATE, [fd64, n.off, 0, 0, 0, 0]),
        op::BIND => made(nr::BIND, [fd64, n.addr, n.off, 0, 0, 0]),
        op::LISTEN => made(nr::LISTEN, [fd64, len, 0, 0, 0, 0]),
        _ => Err(err::EINVAL as i32),
    }
}

const FSYNC: u64 = 74;
const FDATASYNC: u64 = 75;

/// Reads and writes of whatever the descriptor refers to.
fn transfer(e: &mut Engine, n: &Entry, fd: i32) -> Result<(Call, u32), i32> {
    let (fd64, mut len) = (fd as i64 as u64, n.len as u64);
    let writes = matches!(n.opcode, op::WRITE | op::WRITE_FIXED | op::WRITEV);
    let is_vector = matches!(n.opcode, op::READV | op::WRITEV);
    let what = if fd < 0 { kind::UNKNOWN } else { e.fds.kind(fd) };
    let has_offset = matches!(what, kind::REGULAR | kind::BLOCK | kind::DIRECTORY);
    let flags = n.op_flags as u64;
    if flags & RWF_NOWAIT as u64 != 0 && !has_offset {
        return Err(err::EOPNOTSUPP as i32);
    }
    if has_offset && flags != 0 {
        if is_vector {
            let number = if writes { nr::PWRITEV2 } else { nr::PREADV2 };
            return Ok((Call { nr: number, args: [fd64, n.addr, len, n.off, 0, flags] }, 0));
        }
        // There is no call for a single buffer with flags.
        return Err(err::EINVAL as i32);
    }
    if has_offset && n.off != !0 {
        let number = match (writes, is_vector) {
            (false, false) => nr::PREAD64,
            (true, false) => nr::PWRITE64,
            (false, true) => nr::PREADV,
            (true, true) => nr::PWRITEV,
        };
        return Ok((Call { nr: number, args: [fd64, n.addr, len, n.off, 0, 0] }, 0));
    }
    let events = match (has_offset || what == kind::UNKNOWN, writes) {
        (true, _) => 0,
        (_, true) => POLLOUT,
        (_, false) => POLLIN,
    };
    let plain = |number, len| Ok((Call { nr: number, args: [fd64, n.addr, len, 0, 0, 0] }, events));
    match (is_vector, writes) {
        (true, true) => plain(nr::WRITEV, len),
        (true, false) => plain(nr::READV, len),
        (false, _) if what == kind::SOCKET => {
            let number = if writes { nr::SENDTO } else { nr::RECVFROM };
            let args = [fd64, n.addr, len, op::MSG_DONTWAIT as u64, 0, 0];
            Ok((Call { nr: number, args }, events))
        }
        (false, true) => {
            if what == kind::PIPE {
                // More than there is room for would have the thread wait.
                len = len.min(room_in_pipe(fd));
            }
            plain(nr::WRITE, len)
        }
        (false, false) => plain(nr::READ, len),
    }
}

/// Bytes that can be written to a pipe which poll says can be written to.
fn room_in_pipe(fd: i32) -> u64 {
    let mut taken = 0i32;
    // SAFETY: F_GETPIPE_SZ has no effect; FIONREAD writes the four bytes of `taken`.
    let (size, r) =
        unsafe { (syscall!(nr::FCNTL, fd, F_GETPIPE_SZ), syscall!(nr::IOCTL, fd, FIONREAD, &raw mut taken)) };
    if size < 0 || r < 0 {
        return 4096;
    }
    (size.saturating_sub(taken as i64).max(0) as u64 & !4095).max(4096)
}

fn splice(e: &mut Engine, ring: &Ring, n: &Entry, to: i32) -> Result<(Call, u32), i32> {
    const FIXED_IN: u64 = 1 << 31;
    let flags = n.op_flags as u64;
    let from = match flags & FIXED_IN != 0 {
        true => files::file(ring, n.extra).ok_or(err::EBADF as i32)?,
        false => n.extra as i32,
    };
    let (from64, to64, flags) = (from as i64 as u64, to as i64 as u64, flags & !FIXED_IN);
    let events = if e.fds.kind(from) == kind::REGULAR { 0 } else { POLLIN };
    if n.opcode == op::TEE {
        return Ok((Call { nr: TEE, args: [from64, to64, n.len as u64, flags, 0, 0] }, events));
    }
    // Offsets are values here and addresses there: the place for them is the caller's.
    Ok((Call { nr: nr::SPLICE, args: [from64, n.addr, to64, n.off, n.len as u64, flags] }, events))
}

/// The descriptor that a request waits for.
pub fn awaited(ring: &Ring, request: &Request) -> i32 {
    let n = &request.entry;
    match n.opcode {
        op::SPLICE | op::TEE if n.op_flags & 1 << 31 == 0 => n.extra as i32,
        op::SPLICE | op::TEE => files::file(ring, n.extra).unwrap_or(-1),
        _ => descriptor(ring, request).unwrap_or(-1),
    }
}

/// What poll(2) says of a descriptor now, the log of inputs included.
pub fn ready(e: &mut Engine, fd: i32, events: u32) -> u32 {
    let mut p = fd as u32 as u64 | (events as u64 & 0xffff) << 32;
    // SAFETY: poll with time-out 0 reads and writes the eight bytes of `p`.
    unsafe { syscall!(nr::POLL, &raw mut p, 1, 0) };
    let logged = events & POLLIN != 0 && !e.inputs.is_empty() && crate::inputs::readiness::is_ready(e, fd);
    (p >> 48) as u32 | if logged { POLLIN } else { 0 }
}

/// Is it a kind of file that is always ready?
pub fn is_file(fd: i32) -> bool {
    matches!(classify(fd), kind::REGULAR | kind::DIRECTORY | kind::BLOCK)
}

/// Offsets of a splice, which the call takes by address, or none.
pub fn place_offsets(call: &mut Call, at: u64) {
    if call.nr != nr::SPLICE {
        return;
    }
    for (i, argument) in [1, 3].into_iter().enumerate() {
        let offset = call.args[argument];
        call.args[argument] = 0;
        if offset != !0 && user::write(at + i as u64 * 8, &offset) {
            call.args[argument] = at + i as u64 * 8;
        }
    }
}
