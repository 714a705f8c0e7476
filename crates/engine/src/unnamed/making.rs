//! Objects of the commit are made anew, under the numbers that they had, as they were.

use super::{described, messages, timer, watches};
use crate::calls::epoll;
use crate::control::degrade;
use crate::descriptors::CACHED;
use crate::interests;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use core::mem::size_of;
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::{held, unnamed_kind as kind, Descriptor, Held, Timer, Unnamed, LOST_WATCH};
use outlast_image::kernel::interests as any_of;

const O_ACCMODE: u32 = 3;
const O_NONBLOCK: u64 = 0o4000;
const O_CLOEXEC: u64 = 0o2000000;
const F_SETFL: u64 = 4;
const F_DUPFD_CLOEXEC: u64 = 1030;
const F_SETPIPE_SZ: u64 = 1031;
const EFD_SEMAPHORE: u64 = 1;
const AF_UNIX: u64 = 1;
const SHUT_WR: u64 = 1;
/// O_APPEND, O_NONBLOCK, O_ASYNC, O_DIRECT: what F_SETFL sets.
const STATUS: u32 = 0o2000 | 0o4000 | 0o20000 | 0o40000;

/// Numbers whose objects were made anew in this process.
static mut MADE: [u64; CACHED / 64] = [0; CACHED / 64];

fn made() -> &'static mut [u64; CACHED / 64] {
    // SAFETY: only a restore writes there, and nobody has another reference meanwhile.
    unsafe {
        let this = &raw mut MADE;
        &mut *this
    }
}

/// Is what is open as `fd` another object than that of the commit?
pub fn is_made(fd: i32) -> bool {
    made().get(fd as usize / 64).is_some_and(|word| word >> (fd % 64) & 1 != 0)
}

/// Does the commit say that both ends of the stream `fd` were the program's, or the other one nobody's?
pub fn is_whole(e: &mut Engine, fd: i32) -> bool {
    let Some((d, _)) = described(e, fd, scratch::object_buffer()) else { return false };
    let is_stream = matches!(d.unnamed, kind::PIPE | kind::PAIR);
    is_stream && (first_of(e, d.peer).is_some() || held_of(e, d.file).0.flags & held::ENDED != 0)
}

/// Makes all that can be made of what the commit knows.
pub fn make_all(e: &mut Engine) {
    *made() = [0; CACHED / 64];
    for fd in 0..e.fds.end().min(CACHED as i32) {
        if !e.fds.is_open(fd) || is_made(fd) {
            continue;
        }
        let mut rest = [0u8; super::LONGEST];
        let Some((d, bytes)) = described(e, fd, scratch::object_buffer()) else { continue };
        let len = bytes.len().min(rest.len());
        rest[..len].copy_from_slice(&bytes[..len]);
        if d.unnamed != kind::NONE {
            make(e, fd, &d, &rest);
        }
    }
}

fn make(e: &mut Engine, fd: i32, d: &Descriptor, rest: &[u8]) {
    let what = bytemuck::pod_read_unaligned::<Unnamed>(&rest[..size_of::<Unnamed>()]).what;
    let flags = u64::from(d.flags) & O_NONBLOCK;
    // SAFETY: makes objects of the kernel's, which have no effect on memory.
    let new = unsafe {
        match d.unnamed {
            kind::COUNTER => counter(e, fd, flags | if what != 0 { EFD_SEMAPHORE } else { 0 }),
            kind::TIMER => timer::make(&bytemuck::pod_read_unaligned::<Timer>(rest), flags),
            kind::SIGNALS => syscall!(nr::SIGNALFD4, -1i64, &raw const what, 8, flags),
            kind::EPOLL => syscall!(nr::EPOLL_CREATE1, 0),
            kind::WATCHES => {
                if what & LOST_WATCH != 0 || held_something(e, fd) {
                    degrade(Degradation::DescriptorLost);
                }
                watches::make(d.file, flags, what as i32)
            }
            kind::PIPE | kind::PAIR if is_whole(e, fd) => return streams(e, d, what),
            _ => return,
        }
    };
    give(e, lift(e, new), d);
}

unsafe fn counter(e: &mut Engine, fd: i32, flags: u64) -> i64 {
    let new = syscall!(nr::EVENTFD2, 0, flags);
    let buf = scratch::object_buffer();
    let n = e.store().object(object::HELD, fd as u64, buf).unwrap_or(0);
    if n == size_of::<Held>() + 8 && !err::is(new) {
        syscall!(nr::WRITE, new, buf[size_of::<Held>()..].as_ptr(), 8);
    }
    new
}

/// Both ends of a pipe or pair, `fd` being one of them, or the one that is left.
unsafe fn streams(e: &mut Engine, d: &Descriptor, what: u64) {
    let mut ends = [-1i32; 2];
    let r = match d.unnamed {
        kind::PIPE => syscall!(nr::PIPE2, ends.as_mut_ptr(), O_NONBLOCK),
        _ => syscall!(nr::SOCKETPAIR, AF_UNIX, what | O_NONBLOCK, 0, ends.as_mut_ptr()),
    };
    if r != 0 {
        return;
    }
    let mut ends = ends.map(|end| lift(e, end.into()));
    if d.unnamed == kind::PIPE {
        syscall!(nr::FCNTL, ends[0], F_SETPIPE_SZ, what);
        if d.flags & O_ACCMODE != 0 {
            ends.swap(0, 1);
        }
    }
    let [own, other] = ends;
    let peer = first_of(e, d.peer).and_then(|at| described(e, at, scratch::object_buffer()).map(|(peer, _)| peer));
    fill(e, d.file, d.unnamed, other);
    if let Some(peer) = &peer {
        fill(e, peer.file, d.unnamed, own);
    }
    give(e, own, d);
    match peer {
        Some(peer) => give(e, other, &peer),
        None => drop_end(other),
    }
}

fn drop_end(end: i64) {
    // SAFETY: a descriptor that was just made.
    unsafe { syscall!(nr::CLOSE, end) };
}

/// Has what the commit held in a stream lie there again. `from` is its other end.
unsafe fn fill(e: &mut Engine, file: u32, kind: u32, from: i64) {
    let (held, bytes) = held_of(e, file);
    let is_all = match kind {
        kind::PIPE => bytes.is_empty() || syscall!(nr::WRITE, from, bytes.as_ptr(), bytes.len()) == bytes.len() as i64,
        _ => messages::send(from, held.messages, bytes),
    };
    if !is_all || held.flags & held::LOST != 0 {
        degrade(Degradation::DescriptorLost);
    }
    if kind == kind::PAIR && held.flags & held::SHUT != 0 {
        syscall!(nr::SHUTDOWN, from, SHUT_WR);
    }
}

/// Did the commit know that there was something in `fd` of which nothing is kept?
pub fn held_something(e: &mut Engine, fd: i32) -> bool {
    e.store().object(object::HELD, fd as u64, &mut []).is_some()
}

/// What the commit held in the stream that is open as `file`.
fn held_of(e: &mut Engine, file: u32) -> (Held, &'static [u8]) {
    const HEAD: usize = size_of::<Held>();
    let nothing: (Held, &[u8]) = (Held::default(), &[]);
    let Some(fd) = first_of(e, file) else { return nothing };
    let buf = scratch::object_buffer();
    let n = e.store().object(object::HELD, fd as u64, buf).unwrap_or(0).min(buf.len());
    if n < HEAD {
        return nothing;
    }
    let (head, bytes) = buf[..n].split_at(HEAD);
    (bytemuck::pod_read_unaligned(head), bytes)
}

/// The first descriptor that the commit knows as one of the open file.
fn first_of(e: &mut Engine, file: u32) -> Option<i32> {
    (0..e.fds.end()).find(|&fd| file != 0 && file_of(e, fd) == Some(file))
}

fn file_of(e: &mut Engine, fd: i32) -> Option<u32> {
    let mut d = Descriptor::default();
    let is_open = e.fds.is_open(fd);
    let n =
        if is_open { e.store().object(object::DESCRIPTOR, fd as u64, bytemuck::bytes_of_mut(&mut d)) } else { None };
    n.filter(|&n| n >= size_of::<Descriptor>()).map(|_| d.file)
}

/// Moves a descriptor that was just made to a number above all of the program's.
fn lift(e: &Engine, fd: i64) -> i64 {
    if err::is(fd) {
        return fd;
    }
    // SAFETY: the number was made for this.
    unsafe {
        let high = syscall!(nr::FCNTL, fd, F_DUPFD_CLOEXEC, e.fds.end());
        syscall!(nr::CLOSE, fd);
        high
    }
}

/// What was made as `new` gets the numbers under which the commit knows the open file of `d`.
fn give(e: &mut Engine, new: i64, d: &Descriptor) {
    if err::is(new) {
        return;
    }
    // SAFETY: puts it under numbers of the program's.
    unsafe { syscall!(nr::FCNTL, new, F_SETFL, d.flags & STATUS) };
    for fd in 0..e.fds.end().min(CACHED as i32) {
        if fd != d.fd as i32 && (d.file == 0 || file_of(e, fd) != Some(d.file)) {
            continue;
        }
        let Some((own, _)) = described(e, fd, scratch::object_buffer()) else { continue };
        let is_cloexec = own.fd_flags & 1 != 0;
        // SAFETY: as above.
        let r = unsafe { syscall!(nr::DUP3, new, fd, if is_cloexec { O_CLOEXEC } else { 0 }) };
        if !err::is(r) {
            made()[fd as usize / 64] |= 1 << (fd % 64);
            // The next commit describes the new one.
            e.fds.changed(fd);
        }
    }
    drop_end(new);
}

/// Has the epolls that were made watch what those of the commit watched. To be called when everything is open.
pub fn watch_all(e: &mut Engine) {
    let mut is_lost = e.kernel.interests == any_of::TOO_MANY;
    interests::each(|interest| {
        if is_made(interest.epoll) && e.fds.is_open(interest.fd) {
            let r = epoll::watch(interest.epoll, &interest.kept());
            is_lost |= err::is(r) && r != err::EEXIST;
        }
    });
    if is_lost {
        degrade(Degradation::DescriptorLost);
    }
}
