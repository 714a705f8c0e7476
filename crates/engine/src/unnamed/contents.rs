//! What the kernel holds in objects without a name: how far an eventfd has counted, what waits in a pipe or a socket. One call asks for all at
//! each commit; most are empty then.

use super::{fdinfo, messages, type_of};
use crate::call_filters;
use crate::proc;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use core::mem::size_of;
use outlast_image::descriptor::{held, unnamed_kind as kind, Descriptor, Held};

/// As many are looked at; the contents of others are lost in a cold resume.
const MOST: usize = 256;
/// As many bytes of one are kept.
const MOST_BYTES: usize = 128 << 10;

const POLLIN: u16 = 1;
const POLLERR: u16 = 8;
const POLLHUP: u16 = 0x10;
const POLLRDHUP: u16 = 0x2000;
const O_ACCMODE: u32 = 3;
const O_CLOEXEC_NONBLOCK: u64 = 0o2004000;
const F_SETPIPE_SZ: u64 = 1031;
const F_GETPIPE_SZ: u64 = 1032;
const FIONREAD: u64 = 0x541b;
const SPLICE_F_NONBLOCK: u64 = 2;
/// What a pipe holds unless it was told otherwise.
const PIPE_LEN: i64 = 64 << 10;

/// Those that are looked at.
struct Watched {
    /// `struct pollfd`: descriptor, events, and what has come about.
    polls: [u64; MOST],
    kinds: [u8; MOST],
    /// The last commit holds something of it.
    kept: [bool; MOST],
    count: usize,
    /// There may be some for which there was no room.
    any_lost: bool,
}

static mut WATCHED: Watched =
    Watched { polls: [0; MOST], kinds: [0; MOST], kept: [false; MOST], count: 0, any_lost: false };

fn watched() -> &'static mut Watched {
    // SAFETY: only whoever holds the engine's lock comes here, and never while another reference is in use.
    unsafe {
        let this = &raw mut WATCHED;
        &mut *this
    }
}

impl Watched {
    fn place(&self, fd: i32) -> Option<usize> {
        self.polls[..self.count].iter().position(|poll| *poll as u32 as i32 == fd)
    }
}

/// The commit that is being made describes `fd`, or the last one did. False: there is no room to look at it.
pub fn watch(fd: i32, d: &Descriptor) -> bool {
    let events = match d.unnamed {
        kind::COUNTER => POLLIN,
        kind::PIPE if d.flags & O_ACCMODE == 0 => POLLIN,
        // That nobody reads is told unasked.
        kind::PIPE => 0,
        kind::PAIR => POLLIN | POLLRDHUP,
        kind::NAMED_PIPE if d.flags & O_ACCMODE == 1 => return true,
        kind::NAMED_PIPE | kind::WATCHES => POLLIN,
        _ => return true,
    };
    let this = watched();
    if this.count == MOST {
        return false;
    }
    this.polls[this.count] = fd as u32 as u64 | u64::from(events) << 32;
    this.kinds[this.count] = d.unnamed as u8;
    this.kept[this.count] = false;
    this.count += 1;
    true
}

/// The commit says that the content of `fd` is not known.
pub fn lose(e: &mut Engine, fd: i32) {
    e.store().put(object::HELD, fd as u64, bytemuck::bytes_of(&Held { flags: held::LOST, messages: 0 }));
    watched().any_lost = true;
}

/// The last commit holds something of `fd`.
pub fn is_kept(fd: i32) {
    let this = watched();
    if let Some(i) = this.place(fd) {
        this.kept[i] = true;
    }
}

/// The number stands for something else from now on, or for nothing; the commit that is being made says so.
pub fn forget(e: &mut Engine, fd: i32) {
    let this = watched();
    if let Some(i) = this.place(fd) {
        if this.kept[i] {
            e.store().delete(object::HELD, fd as u64);
        }
        this.count -= 1;
        let last = this.count;
        (this.polls[i], this.kinds[i], this.kept[i]) = (this.polls[last], this.kinds[last], this.kept[last]);
    } else if this.any_lost && e.store().object(object::HELD, fd as u64, &mut []).is_some() {
        e.store().delete(object::HELD, fd as u64);
    }
}

pub fn forget_all() {
    let this = watched();
    // It costs a look for each descriptor that is closed.
    (this.count, this.any_lost) = (0, true);
}

/// Puts what there is into the commit that is being made.
pub fn save(e: &mut Engine) {
    let this = watched();
    if this.count == 0 {
        return;
    }
    // SAFETY: poll with time-out 0 reads and writes the entries.
    let r = unsafe { syscall!(nr::POLL, this.polls.as_mut_ptr(), this.count, 0) };
    for i in 0..this.count {
        let fd = this.polls[i] as u32 as i32;
        let come = if err::is(r) { 0 } else { (this.polls[i] >> 48) as u16 };
        let any = come & (POLLIN | POLLERR | POLLHUP | POLLRDHUP) != 0;
        if any {
            keep(e, fd, this.kinds[i].into(), come);
        } else if this.kept[i] {
            e.store().delete(object::HELD, fd as u64);
        }
        this.kept[i] = any;
    }
}

fn keep(e: &mut Engine, fd: i32, of: u32, come: u16) {
    const HEAD: usize = size_of::<Held>();
    let buf = &mut scratch::object_buffer()[..HEAD + MOST_BYTES];
    let mut flags = 0;
    if come & (POLLHUP | POLLERR) != 0 {
        flags |= held::ENDED;
    }
    if come & POLLRDHUP != 0 {
        flags |= held::SHUT;
    }
    let room = &mut buf[HEAD..];
    let found = match of {
        _ if come & POLLIN == 0 => Some((0, 0)),
        kind::COUNTER => {
            let [count] = fdinfo::numbers::<1>(proc::info(fd, &mut [0; 512]), b"eventfd-count:", 16);
            room[..8].copy_from_slice(&count.to_ne_bytes());
            Some((8, 0))
        }
        // Others write there, too.
        kind::NAMED_PIPE | kind::WATCHES => None,
        // Not to make a call that a filter of the program's ends it for.
        _ if call_filters::exist() => None,
        kind::PIPE => pipe(fd, room).map(|n| (n, 0)),
        _ => match type_of(fd) {
            messages::STREAM => messages::stream(fd, room).map(|n| (n, 0)),
            of => messages::each(fd, of, room),
        },
    };
    if found.is_none() {
        flags |= held::LOST;
    }
    let (len, messages) = found.unwrap_or((0, 0));
    buf[..HEAD].copy_from_slice(bytemuck::bytes_of(&Held { flags, messages }));
    e.store().put(object::HELD, fd as u64, &buf[..HEAD + len]);
}

/// Copies what waits in a pipe, which stays there: how many bytes. `None`: there is more than there is room for.
fn pipe(fd: i32, room: &mut [u8]) -> Option<usize> {
    let mut waiting = 0i32;
    let mut copy = [-1i32; 2];
    // SAFETY: the copy is a pipe of the engine's own, closed again; the kernel writes at most as many bytes as there is room for.
    unsafe {
        syscall!(nr::IOCTL, fd, FIONREAD, &raw mut waiting);
        if waiting as usize > room.len() || syscall!(nr::PIPE2, copy.as_mut_ptr(), O_CLOEXEC_NONBLOCK) != 0 {
            return None;
        }
        let len = syscall!(nr::FCNTL, fd, F_GETPIPE_SZ);
        if len > PIPE_LEN {
            syscall!(nr::FCNTL, copy[1], F_SETPIPE_SZ, len);
        }
        syscall!(nr::TEE, fd, copy[1], waiting, SPLICE_F_NONBLOCK);
        let mut n = 0;
        while n < waiting as usize {
            match syscall!(nr::READ, copy[0], room[n..].as_mut_ptr(), room.len() - n) {
                more @ 1.. => n += more as usize,
                _ => break,
            }
        }
        for fd in copy {
            syscall!(nr::CLOSE, fd);
        }
        (n == waiting as usize).then_some(n)
    }
}
