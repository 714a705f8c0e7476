//! Attaches to a process for a moment, as gdb and strace do.

use std::io;
use std::ptr;

/// Seizes the process, stops it, and lets it go again.
///
/// # Errors
/// EPERM if somebody else traces it, ESRCH if it is gone.
pub fn visit(pid: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0)?;
    let stopped = request(libc::PTRACE_INTERRUPT, pid, 0).and_then(|()| await_stop(pid));
    match stopped {
        Ok(signal) => request(libc::PTRACE_DETACH, pid, signal),
        // It ended: nothing is left to detach from.
        Err(error) => Err(error),
    }
}

/// Waits for the next stop; returns the signal that is on its way to the process, 0 for none.
fn await_stop(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: `status` is an int of ours; the process is our tracee.
    let waited = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    if !libc::WIFSTOPPED(status) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let is_group_stop_or_interrupt = status >> 16 == libc::PTRACE_EVENT_STOP;
    Ok(if is_group_stop_or_interrupt { 0 } else { libc::WSTOPSIG(status) })
}

fn request(request: libc::c_uint, pid: i32, data: i32) -> io::Result<()> {
    let data = ptr::without_provenance_mut::<libc::c_void>(data as usize);
    // SAFETY: none of the requests made here reads or writes memory of this process.
    match unsafe { libc::ptrace(request, pid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
