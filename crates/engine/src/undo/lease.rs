//! Asks the kernel whether a file is open nowhere else: it gives a write lease only to who has it open alone.

use crate::signals::SIGENGINE;
use crate::sys::{err, nr, syscall};
use outlast_image::layout::{session, SESSION_BASE};

const F_SETOWN: u64 = 8;
const F_GETOWN: u64 = 9;
const F_SETSIG: u64 = 10;
const F_GETSIG: u64 = 11;
const F_SETLEASE: u64 = 1024;
const F_GETLEASE: u64 = 1025;
const F_WRLCK: i64 = 1;

/// What is set back when the kernel has answered. In the session: the table of descriptors, and with it the lease, outlives whoever dies in
/// between, and everybody who opens the file would wait for the lease's end.
const ASKING: *mut Asking = (SESSION_BASE + session::PENDING + 3088) as *mut Asking;

#[repr(C)]
#[derive(Clone, Copy)]
struct Asking {
    /// The descriptor's number, plus one; 0: nobody asks.
    fd: u64,
    lease: i64,
    owner: i64,
    signal: i64,
}

/// Takes a lease and gives it back. Whoever opens the file in between knocks at the engine, which is no harm.
pub fn is_open_once(fd: i32) -> bool {
    // SAFETY: fcntl commands without pointers, on a file that is the program's; all they change is set back. The words in the session are for
    // this alone, and a single thread changes files at a time.
    unsafe {
        let lease = syscall!(nr::FCNTL, fd, F_GETLEASE);
        if lease == F_WRLCK {
            // The program's own.
            return true;
        }
        let (owner, signal) = (syscall!(nr::FCNTL, fd, F_GETOWN), syscall!(nr::FCNTL, fd, F_GETSIG));
        ASKING.write_volatile(Asking { fd: 0, lease, owner, signal });
        (&raw mut (*ASKING).fd).write_volatile(fd as u64 + 1);
        syscall!(nr::FCNTL, fd, F_SETSIG, SIGENGINE);
        let is_given = syscall!(nr::FCNTL, fd, F_SETLEASE, F_WRLCK) == 0;
        set_back();
        is_given
    }
}

/// Sets back what a lease that was asked for has changed, also one that a predecessor asked for.
pub fn set_back() {
    // SAFETY: as above.
    unsafe {
        let Asking { fd, lease, owner, signal } = ASKING.read_volatile();
        // Whoever died before this was set has changed nothing.
        let Some(fd) = fd.checked_sub(1).filter(|fd| syscall!(nr::FCNTL, *fd, F_GETSIG) == SIGENGINE as i64) else {
            return;
        };
        syscall!(nr::FCNTL, fd, F_SETLEASE, lease);
        syscall!(nr::FCNTL, fd, F_SETSIG, if err::is(signal) { 0 } else { signal });
        syscall!(nr::FCNTL, fd, F_SETOWN, owner);
        (&raw mut (*ASKING).fd).write_volatile(0);
    }
}
