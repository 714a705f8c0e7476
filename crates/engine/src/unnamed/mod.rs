//! Kernel objects without a name: eventfds, timerfds, signalfds, epolls, inotifys, and the pipes and pairs of sockets that the program made for itself.
//!
//! As long as the anchor lives the kernel keeps them. Of a cold resume they are lost, and are made anew as they were at the commit:
//! what each is stands in its descriptor's object, what the kernel holds in it ([`contents`]) and what epolls watch ([`crate::interests`]) in
//! objects of their own. Calls on them have no effect on anybody but the program: those that followed the commit are made again ([`again`]), and
//! what was read since the commit is read from the new ones.

mod again;
mod contents;
mod fdinfo;
mod making;
mod messages;
mod origin;
mod timer;
pub mod watches;

pub use again::forget_what_was_done;
pub use contents::{forget, save};
pub use making::{held_something, is_made, is_whole, make_all, watch_all};
pub use origin::{Origin, Origins};

use crate::proc;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{nr, syscall};
use core::mem::size_of;
use outlast_image::descriptor::{descriptor_kind, unnamed_kind as kind, Descriptor, Unnamed, LOST_WATCH};

const SOL_SOCKET: u64 = 1;
const SO_TYPE: u64 = 3;
const F_GETPIPE_SZ: u64 = 1032;

/// The longest of what follows a descriptor that is one of these.
pub const LONGEST: usize = size_of::<outlast_image::descriptor::Timer>();

/// What a commit says of `fd`, if it is one: its kind, and what follows the descriptor, whose length is returned.
pub fn describe(e: &mut Engine, fd: i32, d: &mut Descriptor, rest: &mut [u8; LONGEST]) -> usize {
    let origin = e.fds.origins.of(fd);
    (d.file, d.peer) = (origin.file, origin.peer);
    d.unnamed = kind_of(fd, d.kind, &origin, d.path_len != 0);
    e.fds.origins.is(fd, d.unnamed);
    let mut buf = [0u8; 1024];
    let what = match d.unnamed {
        kind::COUNTER => u64::from(origin.is_semaphore),
        kind::TIMER => {
            rest.copy_from_slice(bytemuck::bytes_of(&timer::describe(fd)));
            return rest.len();
        }
        kind::SIGNALS => fdinfo::numbers::<1>(proc::info(fd, &mut buf), b"sigmask:", 16)[0],
        // SAFETY: asks only.
        kind::PIPE => unsafe { syscall!(nr::FCNTL, fd, F_GETPIPE_SZ) }.max(0) as u64,
        kind::PAIR => type_of(fd),
        kind::NAMED_PIPE => {
            contents::watch(fd, d);
            return 0;
        }
        kind::WATCHES => {
            watches::compare(e, fd);
            let origin = e.fds.origins.of(fd);
            origin.last as u64 | if origin.lost { LOST_WATCH } else { 0 }
        }
        _ => return 0,
    };
    let unnamed = Unnamed { what };
    rest[..size_of::<Unnamed>()].copy_from_slice(bytemuck::bytes_of(&unnamed));
    if !contents::watch(fd, d) {
        contents::lose(e, fd);
    }
    size_of::<Unnamed>()
}

fn kind_of(fd: i32, of: u32, origin: &Origin, has_name: bool) -> u32 {
    match of {
        descriptor_kind::PIPE | descriptor_kind::SOCKET if origin.is_stream() => origin.kind,
        descriptor_kind::PIPE if has_name => kind::NAMED_PIPE,
        descriptor_kind::ANONYMOUS => match proc::link(fd, &mut [0; 32]) {
            b"anon_inode:[eventfd]" => kind::COUNTER,
            b"anon_inode:[timerfd]" => kind::TIMER,
            b"anon_inode:[signalfd]" => kind::SIGNALS,
            b"anon_inode:[eventpoll]" => kind::EPOLL,
            b"anon_inode:inotify" => kind::WATCHES,
            _ => kind::NONE,
        },
        _ => kind::NONE,
    }
}

fn type_of(socket: i32) -> u64 {
    let (mut value, mut len) = (0u32, 4u32);
    // SAFETY: the kernel writes four bytes.
    unsafe { syscall!(nr::GETSOCKOPT, socket, SOL_SOCKET, SO_TYPE, &raw mut value, &raw mut len) };
    value.into()
}

/// What is behind `fd` was set, or read: of a timer or an inotify a commit has something else to say.
pub fn changed(e: &mut Engine, fd: i32) {
    if matches!(e.fds.origins.of(fd).kind, kind::TIMER | kind::WATCHES) {
        e.fds.changed(fd);
    }
}

/// Is `fd` an end of something of which the program has the other one, too?
pub fn is_own_stream(e: &Engine, fd: i32) -> bool {
    let origin = e.fds.origins.of(fd);
    let is_other = |other: i32| e.fds.is_open(other) && e.fds.origins.of(other).file == origin.peer;
    origin.is_stream() && (0..e.fds.end()).any(is_other)
}

/// What the commit says of `fd`, and what follows that.
fn described<'b>(e: &mut Engine, fd: i32, buf: &'b mut [u8]) -> Option<(Descriptor, &'b [u8])> {
    const HEAD: usize = size_of::<Descriptor>();
    let n = e.store().object(object::DESCRIPTOR, fd as u64, buf)?.min(buf.len());
    let (head, rest) = buf[..n].split_at_checked(HEAD)?;
    Some((bytemuck::pod_read_unaligned(head), rest))
}

/// Takes from the commit which descriptors of a restored program are which, and what there is in them. To be called when all are open.
pub fn load(e: &mut Engine) {
    contents::forget_all();
    let mut any_watches = false;
    for fd in 0..e.fds.end() {
        if !e.fds.is_open(fd) {
            continue;
        }
        let Some((d, rest)) = described(e, fd, scratch::object_buffer()) else { continue };
        let has_what = d.unnamed != kind::NONE && d.unnamed != kind::NAMED_PIPE && d.path_len == 0;
        let what = rest.first_chunk::<8>().filter(|_| has_what).map_or(0, |what| u64::from_ne_bytes(*what));
        e.fds.origins.load(fd, &d, what);
        any_watches |= d.unnamed == kind::WATCHES;
        if contents::watch(fd, &d) && e.store().object(object::HELD, fd as u64, &mut []).is_some() {
            contents::is_kept(fd);
        }
    }
    watches::load(e, any_watches);
}
