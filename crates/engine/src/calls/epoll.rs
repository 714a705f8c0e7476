//! Interest lists of epoll. They live in the kernel's object, which the anchor keeps: a change is committed before and
//! after, and made again only if it had not been made.

use crate::dispatch::{visible, Call};
use crate::own_descriptors::Passing;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::text;
use crate::thread::Thread;
use crate::user;

pub const EPOLL_CTL: u64 = 233;
const ADD: u64 = 1;
const DEL: u64 = 2;
const MOD: u64 = 3;
const ENOENT: i64 = -2;
const EPOLLONESHOT: u32 = 1 << 30;

/// epoll_ctl.
pub fn control(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let events = if call.args[1] == DEL { 0 } else { user::read::<u32>(call.args[3]).unwrap_or(0) };
    if events & EPOLLONESHOT != 0 && e.kernel.one_shot == 0 {
        (e.kernel.one_shot, e.kernel_dirty) = (1, true);
    }
    visible(e, t, call)
}

/// The result of a repeated change, if the predecessor had made it already.
pub fn repeated(call: &Call, r: i64) -> i64 {
    match (call.args[1], r) {
        (ADD, err::EEXIST) | (DEL, ENOENT) => 0,
        _ => r,
    }
}

/// What an epoll watches.
pub struct Interest {
    pub fd: i32,
    pub events: u32,
    pub data: u64,
}

/// What the epoll behind `fd` watches; nothing, if it is none. `buf`: room for what /proc says of it.
pub fn interests(fd: i32, buf: &mut [u8]) -> impl Iterator<Item = Interest> + '_ {
    let mut name = [0u8; 48];
    text::join(&mut name, &[b"/proc/self/fdinfo/"], Some(fd as u32 as u64));
    let n = match Passing::open(name.as_ptr(), 0) {
        // SAFETY: reads a file of /proc into the buffer.
        Ok(info) => unsafe { syscall!(nr::READ, info.fd, buf.as_mut_ptr(), buf.len()) },
        Err(e) => e,
    };
    buf[..n.max(0) as usize].split(|&b| b == b'\n').filter_map(Interest::parse)
}

impl Interest {
    /// `tfd: FD events: HEX data: HEX …`
    fn parse(line: &[u8]) -> Option<Interest> {
        line.strip_prefix(b"tfd:")?;
        let mut words = line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty());
        let mut value = |radix| words.by_ref().nth(1).map_or(0, |word| number(word, radix));
        let (fd, events, data) = (value(10), value(16), value(16));
        Some(Interest { fd: fd as i32, events: events as u32, data })
    }

    /// As the kernel has it: `struct epoll_event` is packed, 4 bytes of events, 8 of data.
    fn event(&self) -> [u8; 12] {
        let mut event = [0u8; 12];
        event[..4].copy_from_slice(&self.events.to_le_bytes());
        event[4..].copy_from_slice(&self.data.to_le_bytes());
        event
    }
}

/// Edges that the dead process took since the commit would be lost: sets every interest again, which makes the kernel
/// report what is ready now. `fd` is a descriptor of the program's; anything but an epoll is left alone.
pub fn rearm(fd: i32, buf: &mut [u8]) {
    for interest in interests(fd, buf) {
        // SAFETY: sets the interest that is there.
        unsafe { syscall!(EPOLL_CTL, fd, MOD, interest.fd, interest.event().as_ptr()) };
    }
}

fn number(word: &[u8], radix: u32) -> u64 {
    word.iter()
        .map_while(|c| (*c as char).to_digit(radix))
        .fold(0u64, |v, d| v.wrapping_mul(radix as u64).wrapping_add(d as u64))
}
