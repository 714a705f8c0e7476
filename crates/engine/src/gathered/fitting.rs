//! Which outputs can be gathered.

use crate::call_filters;
use crate::calls::unseen;
use crate::dispatch::Call;
use crate::operation::POLLOUT;
use crate::regions;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::unnamed;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::option;

const MSG_DONTWAIT: u64 = 0x40;
const MSG_NOSIGNAL: u64 = 0x4000;
const O_NONBLOCK: u64 = 0o4000;
const O_DIRECT: u64 = 0o40000;
const SOL_SOCKET: u64 = 1;
const SO_TYPE: u64 = 3;
const SO_SNDBUF: u64 = 7;
const SOCK_STREAM: u32 = 1;
const SO_SNDTIMEO: u64 = 21;
/// A socket has room when a third or more of its buffer is free; there bytes take several times what they are.
const SHARE: u32 = 16;
/// Descriptors that are remembered.
const KNOWN: usize = 64;

/// Is it an output of the kind, and small?
#[inline]
pub fn may_fit(call: &Call) -> bool {
    let a = &call.args;
    let is_one = match call.nr {
        nr::WRITE => true,
        nr::SENDTO => a[4] == 0 && a[3] & !(MSG_DONTWAIT | MSG_NOSIGNAL) == 0,
        _ => false,
    };
    is_one && a[2].wrapping_sub(1) < super::MOST_OF_ONE
}

/// What is known of a descriptor since the last call that may have changed it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Everything: who writes to it waits until there is room.
    Waiting,
    /// So many bytes at once if it has room at all.
    Share(u32),
}

/// Descriptors that the program writes to in quick succession.
pub struct Known {
    of: [(i32, Takes); KNOWN],
    count: usize,
    next: usize,
}

impl Known {
    pub const fn new() -> Known {
        Known { of: [(-1, Takes::Nothing); KNOWN], count: 0, next: 0 }
    }

    /// A descriptor may be another one from now on, or behave otherwise.
    #[inline]
    pub fn forget(&mut self) {
        (self.count, self.next) = (0, 0);
    }
}

/// How many bytes the descriptor takes for certain, or waits with until it does.
pub fn room(e: &mut Engine, call: &Call) -> Option<u32> {
    let fd = call.fd();
    let unwilling = e.args.options & option::EACH_OUTPUT != 0 || unseen::chosen(e) || !e.ring.available();
    if unwilling || call_filters::exist() || e.fds.is_own(fd) || !is_alone(e) {
        return None;
    }
    let known = &e.gathered.known;
    let found = known.of[..known.count].iter().find(|(known, _)| *known == fd);
    let takes = found.map(|(_, takes)| *takes).unwrap_or_else(|| {
        // What is the program's alone is made anew by a cold resume as it was at the commit: with some of what leaves together, and
        // without the rest, it cannot be.
        let is_own = unnamed::is_own_stream(e, fd);
        let takes = if is_own { None } else { look(fd, e.fds.kind(fd)) }.unwrap_or(Takes::Nothing);
        let known = &mut e.gathered.known;
        known.of[known.next] = (fd, takes);
        known.next = (known.next + 1) % KNOWN;
        known.count = (known.count + 1).min(KNOWN);
        takes
    });
    let waits = call.nr == nr::WRITE || call.args[3] & MSG_DONTWAIT == 0;
    match takes {
        Takes::Waiting if waits && is_writable(fd) => Some(u32::MAX),
        Takes::Share(most) if is_writable(fd) => most.checked_sub(e.gathered.kept.queued(fd)),
        _ => None,
    }
}

/// Has the descriptor room, and nobody to tell of an error?
fn is_writable(fd: i32) -> bool {
    let mut p = fd as u32 as u64 | (POLLOUT as u64) << 32;
    // SAFETY: poll with time-out 0 reads and writes the eight bytes of `p`.
    unsafe { syscall!(nr::POLL, &raw mut p, 1, 0) == 1 && p >> 48 == POLLOUT as u64 }
}

fn look(fd: i32, kind: u32) -> Option<Takes> {
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, 3) } as u64;
    let waits = flags & O_NONBLOCK == 0;
    Some(match kind {
        kind::PIPE if waits && flags & O_DIRECT == 0 => Takes::Waiting,
        kind::SOCKET if option_of(fd, SO_TYPE)? != SOCK_STREAM || option_of(fd, SO_SNDTIMEO)? != 0 => Takes::Nothing,
        kind::SOCKET if waits => Takes::Waiting,
        kind::SOCKET => Takes::Share(option_of(fd, SO_SNDBUF)? / SHARE),
        _ => Takes::Nothing,
    })
}

/// A number of four bytes, or two words of which one is not 0.
fn option_of(fd: i32, name: u64) -> Option<u32> {
    let (mut value, mut len) = ([0u32; 4], 16u32);
    // SAFETY: the kernel writes sixteen bytes at most, and four.
    let r = unsafe { syscall!(nr::GETSOCKOPT, fd, SOL_SOCKET, name, &raw mut value, &raw mut len) };
    (r == 0).then_some(value.iter().fold(0, |all, word| all | word))
}

/// May the program share memory from now on that it can write to?
pub fn may_share(call: &Call) -> bool {
    const MAP_SHARED: u64 = 1;
    const PROT_WRITE: u64 = 2;
    const SHMAT: u64 = 30;
    match call.nr {
        nr::MMAP => call.args[3] & MAP_SHARED != 0,
        nr::MPROTECT => call.args[2] & PROT_WRITE != 0,
        n => n == SHMAT,
    }
}

/// Does the program share no memory that it can write to? Looked up anew after a call that may have changed that.
fn is_alone(e: &mut Engine) -> bool {
    if !e.gathered.is_alone {
        e.gathered.is_alone = !regions::any_shared_writable(regions::read_maps());
    }
    e.gathered.is_alone
}
