//! Signals of the supervisor: received through a descriptor, so that no handler runs and none is inherited.

use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// What the supervisor was started with, for the programs it starts.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: libc::sigset_t,
    child: libc::sigaction,
}

impl Inherited {
    /// Gives the calling process mask and dispositions back. Makes system calls only.
    pub fn restore(&self) {
        // SAFETY: both structures were filled by the kernel.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.child, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

/// Lets all signals through, whatever this process was started with.
pub fn unblock_all() {
    // SAFETY: the kernel only reads an empty set of ours.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// A signal that was sent to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub signal: i32,
    /// `si_code`: who caused it. 0 (kill) and below: a process; above: the kernel.
    pub code: i32,
    /// The process that sent it, if one did.
    pub sender: i32,
    /// What came with it (sigqueue).
    pub value: u64,
}

/// All signals, blocked and read from a descriptor.
pub struct Signals {
    file: OwnedFd,
    inherited: Inherited,
}

impl Signals {
    /// Blocks all signals of the calling thread, and of those it starts.
    pub fn block() -> Result<Self, Errno> {
        // SAFETY: the structures are ours, and filled before they are read; a default disposition has no handler.
        unsafe {
            let mut all = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            let all = all.assume_init();
            let mut inherited = Inherited { mask: std::mem::zeroed(), child: std::mem::zeroed() };
            libc::sigprocmask(libc::SIG_SETMASK, &all, &mut inherited.mask);
            // Ignored, children would vanish without a status.
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &default, &mut inherited.child);
            match libc::signalfd(-1, &all, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::MFILE)),
                fd => Ok(Self { file: OwnedFd::from_raw_fd(fd), inherited }),
            }
        }
    }

    /// The same for another process of the program, whose supervisor reads none.
    pub fn shared(&self) -> Result<Self, Errno> {
        let file = self.file.try_clone().map_err(|_| Errno::MFILE)?;
        Ok(Self { file, inherited: self.inherited })
    }

    /// Readable while a signal waits.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn inherited(&self) -> &Inherited {
        &self.inherited
    }

    /// The next signal that waits, if one does.
    pub fn next(&self) -> Option<Received> {
        let mut info = [0u8; std::mem::size_of::<libc::signalfd_siginfo>()];
        let n = rustix::io::read(&self.file, &mut info).ok()?;
        if n != info.len() {
            return None;
        }
        // SAFETY: the kernel wrote a whole structure, which consists of integers.
        let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(info.as_ptr().cast()) };
        Some(Received {
            signal: info.ssi_signo as i32,
            code: info.ssi_code,
            sender: info.ssi_pid as i32,
            value: info.ssi_ptr,
        })
    }
}
