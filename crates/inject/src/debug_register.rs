//! The first debug register of a thread: it stops where an address is executed or accessed.

use crate::ptrace::request;
use libc::{c_void, pid_t};
use rustix::io::Errno;

/// `offsetof(struct user, u_debugreg)`.
const DEBUG_REGISTERS: u64 = std::mem::offset_of!(libc::user, u_debugreg) as u64;

/// What a debug register looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    Execution,
    /// Reads and writes of the byte at this address.
    Access,
}

/// Has a stopped thread stop where an address is executed or accessed. Forks do not inherit that, and no text is changed.
pub fn set_debug(tid: pid_t, address: u64, watch: Watch) -> Result<(), Errno> {
    let kind = match watch {
        Watch::Execution => 0,
        Watch::Access => 0b0011,
    };
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 0)?;
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS, address)?;
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 1 | kind << 16)
}

pub fn clear_debug(tid: pid_t) {
    let _ = request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 0);
}

/// Whether a SIGTRAP is that of the debug register.
pub fn has_met(tid: pid_t) -> bool {
    let offset = DEBUG_REGISTERS + 6 * 8;
    // SAFETY: a request without pointers of ours; PEEKUSER returns the word.
    let met =
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, tid, offset as *mut c_void, std::ptr::null_mut::<c_void>()) };
    met != -1 && met & 1 != 0 && request(libc::PTRACE_POKEUSER, tid, offset, 0).is_ok()
}

/// Whether a stopped thread is still to be told of the debug register.
pub fn has_trap_pending(tid: pid_t) -> bool {
    /// `TRAP_HWBKPT` of `siginfo.h`.
    const BY_DEBUG_REGISTER: i32 = 4;
    // The signals that are for this thread alone, from the first one on: more than may be waiting here.
    let which = libc::ptrace_peeksiginfo_args { off: 0, flags: 0, nr: 8 };
    // SAFETY: plain old data.
    let mut waiting: [libc::siginfo_t; 8] = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to objects of ours; `nr` is the length of the second.
    let told = unsafe { libc::ptrace(libc::PTRACE_PEEKSIGINFO, tid, &raw const which, waiting.as_mut_ptr()) };
    let waiting = waiting.iter().take(usize::try_from(told).unwrap_or(0));
    waiting.clone().any(|info| info.si_signo == libc::SIGTRAP && info.si_code == BY_DEBUG_REGISTER)
}
