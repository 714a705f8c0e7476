//! ptrace, for the moment that an injection takes.

use crate::end::End;
use displaydoc::Display;
use libc::{c_long, c_void, pid_t, user_regs_struct};
use rustix::io::Errno;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often a process that is waited for, but not for ever, is looked at.
const PULSE: Duration = Duration::from_micros(50);

/// Why an operation on a stopped process failed.
#[derive(Clone, Copy, Debug, Display, Error, PartialEq, Eq)]
pub enum Fault {
    /// the process ended meanwhile ({0:?})
    Gone(End),
    /// cannot {0}: {1}
    Kernel(&'static str, Errno),
}

/// The options every traced process gets: it stops at exec, and must not go on half injected if the supervisor dies.
pub const OPTIONS: i32 = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;

fn request(kind: libc::c_uint, pid: pid_t, addr: u64, data: u64) -> Result<c_long, Errno> {
    // SAFETY: the callers below pass requests whose `data` is a number, or points to an object of theirs of the size
    // that the kernel writes or reads for that request.
    let r = unsafe { libc::ptrace(kind, pid, addr as *mut c_void, data as *mut c_void) };
    match r {
        -1 => Err(last_errno()),
        r => Ok(r),
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Attaches to a running process without stopping it.
pub fn seize(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, pid, 0, OPTIONS as u64).map(drop)
}

/// The same for a process that nothing is wrong with if we die: it stops at exec, that is all.
pub fn seize_for_exec(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, pid, 0, libc::PTRACE_O_TRACEEXEC as u64).map(drop)
}

/// The same, for a process that is to live on whatever becomes of us.
pub fn seize_gently(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, pid, 0, 0).map(drop)
}

/// Asks a seized process to stop; [`wait_stop`] tells when it did.
pub fn interrupt(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_INTERRUPT, pid, 0, 0).map(drop)
}

pub fn set_options(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_SETOPTIONS, pid, 0, OPTIONS as u64).map(drop)
}

/// Lets it go on, with a signal to be delivered or 0.
pub fn resume(pid: pid_t, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_CONT, pid, 0, signal as u64).map(drop)
}

/// Lets it make one instruction.
pub fn step(pid: pid_t, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SINGLESTEP, pid, 0, signal as u64).map(drop)
}

/// Leaves a process in group-stop stopped, but lets it notice SIGCONT.
pub fn listen(pid: pid_t) -> Result<(), Errno> {
    request(libc::PTRACE_LISTEN, pid, 0, 0).map(drop)
}

/// Lets it go on untraced, with a signal to be delivered or 0.
pub fn detach(pid: pid_t, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_DETACH, pid, 0, signal as u64).map(drop)
}

pub fn registers(pid: pid_t) -> Result<user_regs_struct, Errno> {
    let mut regs = std::mem::MaybeUninit::<user_regs_struct>::zeroed();
    request(libc::PTRACE_GETREGS, pid, 0, regs.as_mut_ptr() as u64)?;
    // SAFETY: the structure holds integers only, so that zeroes are valid, and the kernel has filled it.
    Ok(unsafe { regs.assume_init() })
}

pub fn set_registers(pid: pid_t, regs: &user_regs_struct) -> Result<(), Errno> {
    request(libc::PTRACE_SETREGS, pid, 0, std::ptr::from_ref(regs) as u64).map(drop)
}

/// The signals that the stopped thread has blocked, bit n-1 for signal n.
pub fn signal_mask(pid: pid_t) -> Result<u64, Errno> {
    let mut mask = 0u64;
    request(libc::PTRACE_GETSIGMASK, pid, 8, std::ptr::from_mut(&mut mask) as u64)?;
    Ok(mask)
}

pub fn set_signal_mask(pid: pid_t, mask: u64) -> Result<(), Errno> {
    request(libc::PTRACE_SETSIGMASK, pid, 8, std::ptr::from_ref(&mask) as u64).map(drop)
}

/// A thread's restartable sequence, as it has registered it: address, length, signature; address 0: none.
///
/// # Errors
/// EIO before Linux 5.13, and where the kernel has none.
pub fn restartable_sequence(pid: pid_t) -> Result<[u64; 3], Errno> {
    const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
    /// `struct ptrace_rseq_configuration`.
    #[repr(C)]
    #[derive(Default)]
    struct Configuration {
        address: u64,
        length: u32,
        signature: u32,
        flags: u32,
        pad: u32,
    }
    let mut found = Configuration::default();
    let size = std::mem::size_of::<Configuration>() as u64;
    request(PTRACE_GET_RSEQ_CONFIGURATION, pid, size, std::ptr::from_mut(&mut found) as u64)?;
    Ok([found.address, found.length.into(), found.signature.into()])
}

/// Whether the thread has its system calls dispatched to itself (Syscall User Dispatch). False before Linux 6.4, which does not tell.
pub fn dispatches_calls(pid: pid_t) -> bool {
    const PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG: libc::c_uint = 0x4211;
    // struct ptrace_sud_config: mode, selector, offset, len.
    let mut found = [0u64; 4];
    let r = request(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, pid, 32, found.as_mut_ptr() as u64);
    r.is_ok() && found[0] != 0
}

/// Writes 8 bytes, also where the program itself may not write (its text).
pub fn poke(pid: pid_t, address: u64, word: u64) -> Result<(), Errno> {
    request(libc::PTRACE_POKEDATA, pid, address, word).map(drop)
}

impl Fault {
    /// Looks behind an error: a traced process that is not found was killed, and how it ended is waited for.
    pub fn explained(self, pid: pid_t) -> Self {
        match self {
            Self::Kernel(_, Errno::SRCH) => end(pid).map_or(self, Self::Gone),
            other => other,
        }
    }
}

/// Kills a child and waits until it has ended; returns how.
pub fn end(pid: pid_t) -> Option<End> {
    // SAFETY: plain system call; the process is our child and not reaped, so that the number is its own.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    loop {
        match wait_stop(pid) {
            Err(Fault::Gone(end)) => return Some(end),
            Err(Fault::Kernel(..)) => return None,
            // It stopped before the signal took effect.
            Ok(_) => (),
        }
    }
}

/// What a traced process reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal it stopped for.
    pub signal: i32,
    /// `PTRACE_EVENT_*`, 0 for a stop before a signal is delivered.
    pub event: i32,
}

impl Stop {
    /// From a wait status of a traced process; `None` if it ended or continued.
    pub fn of(status: i32) -> Option<Self> {
        libc::WIFSTOPPED(status).then(|| Self { signal: libc::WSTOPSIG(status), event: (status >> 16) & 0xff })
    }
}

/// Waits until a traced process stops or ends.
pub fn wait_stop(pid: pid_t) -> Result<Stop, Fault> {
    loop {
        if let Some((_, stop)) = wait(pid, 0)? {
            return Ok(stop);
        }
    }
}

/// The same, but at most so long; `None`: it does neither.
pub fn wait_stop_for(pid: pid_t, patience: Duration) -> Result<Option<Stop>, Fault> {
    let asked = Instant::now();
    loop {
        match wait(pid, libc::WNOHANG)? {
            None if asked.elapsed() > patience => return Ok(None),
            None => std::thread::sleep(PULSE),
            Some((_, stop)) => return Ok(Some(stop)),
        }
    }
}

/// Whether one that this thread traces has stopped, and which: a thread that executes takes its process's number.
pub fn any_stopped() -> Result<Option<(pid_t, Stop)>, Fault> {
    wait(-1, libc::WNOHANG | libc::__WNOTHREAD)
}

fn wait(pid: pid_t, options: i32) -> Result<Option<(pid_t, Stop)>, Fault> {
    let mut status = 0;
    // SAFETY: `status` is an int of ours.
    match unsafe { libc::waitpid(pid, &mut status, libc::__WALL | options) } {
        0 => Ok(None),
        pid @ 1.. => match End::of(status) {
            Some(end) => Err(Fault::Gone(end)),
            None => Ok(Stop::of(status).map(|stop| (pid, stop))),
        },
        _ => match last_errno() {
            Errno::INTR => Ok(None),
            e => Err(Fault::Kernel("wait for the process to stop", e)),
        },
    }
}
