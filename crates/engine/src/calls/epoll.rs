//! Interest lists of epoll. They live in the kernel's object, which the anchor keeps: a change is committed before and
//! after, and made again only if it had not been made.

use crate::dispatch::{visible, Call};
use crate::inputs::readiness::Interest;
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

/// Edges that the dead process took since the commit would be lost: sets every interest again, which makes the kernel
/// report what is ready now. `fd` is a descriptor of the program's; anything but an epoll is left alone.
pub fn rearm(fd: i32, buf: &mut [u8]) {
    let mut name = [0u8; 48];
    text::join(&mut name, &[b"/proc/self/fdinfo/"], Some(fd as u64));
    // SAFETY: reads a file of /proc into the buffer.
    let n = unsafe {
        let Ok(info) = Passing::open(name.as_ptr(), 0) else { return };
        syscall!(nr::READ, info.fd, buf.as_mut_ptr(), buf.len()).max(0) as usize
    };
    for interest in buf[..n].split(|&b| b == b'\n').filter_map(Interest::parse) {
        // struct epoll_event is packed: 4 bytes of events, 8 of data.
        let mut event = [0u8; 12];
        event[..4].copy_from_slice(&interest.events.to_le_bytes());
        event[4..].copy_from_slice(&interest.data.to_le_bytes());
        // SAFETY: sets the interest that is there.
        unsafe { syscall!(EPOLL_CTL, fd, MOD, interest.fd, event.as_ptr()) };
    }
}
