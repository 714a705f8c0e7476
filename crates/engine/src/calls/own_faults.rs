//! A program that serves page faults of its own memory (userfaultfd). Where it has not served one yet the engine, reading or writing
//! there under its lock, would wait for a thread that waits for the lock; and the kernel lets one userfaultfd alone have a range,
//! which is the tracker's. Such a program is left alone from its first one on.

use crate::dispatch::{native, Call};
use crate::native;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use outlast_image::degradation::Degradation;

pub const USERFAULTFD: u64 = 323;
/// The same as a request to /dev/userfaultfd.
pub const USERFAULTFD_IOC_NEW: u64 = 0xaa00;

pub fn serve(_: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    // Programs ask whether they may have one, and do without where they may not.
    let fd = native(call);
    if err::is(fd) {
        return fd;
    }
    // SAFETY: nobody has used it yet.
    unsafe { syscall!(nr::CLOSE, fd) };
    native::suspend(Degradation::OwnFaults);
    // By a program that nobody stands beside the call is made again.
    t.regs.rip -= 2;
    call.nr as i64
}
