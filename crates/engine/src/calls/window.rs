//! The size of the terminal's window. The kernel tells of a change by a signal, which nobody takes while the program is
//! dead: what the program was told last is compared with what the terminal says after a restore.

use crate::dispatch::{interruptible, Call};
use crate::queued;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::Thread;
use crate::user;

pub const TIOCGWINSZ: u64 = 0x5413;
const SIGWINCH: u64 = 28;
const SI_KERNEL: u64 = 0x80;

/// ioctl: the program asks for the size.
pub fn ask(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let r = interruptible(t, call);
    if r == 0 {
        if let Some(size) = user::read::<[u16; 4]>(call.args[2]) {
            if (e.kernel.window_fd, e.kernel.window) != (call.fd(), size) {
                (e.kernel.window_fd, e.kernel.window) = (call.fd(), size);
                e.kernel_dirty = true;
            }
        }
    }
    r
}

/// Sends the signal that the program missed, if it did.
pub fn compare(e: &Engine) {
    let mut now = [0u16; 4];
    // SAFETY: the kernel writes eight bytes.
    let r = unsafe { syscall!(nr::IOCTL, e.kernel.window_fd, TIOCGWINSZ, now.as_mut_ptr()) };
    if r == 0 && now != e.kernel.window {
        let mut info = [0; 16];
        (info[0], info[1]) = (SIGWINCH, SI_KERNEL);
        queued::send(&info);
    }
}
