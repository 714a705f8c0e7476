//! Single requests of ptrace, and a traced process's memory.

use libc::{c_void, pid_t, user_regs_struct};
use outlast_supervisor::trace;
use rustix::io::Errno;

pub fn threads_of(pid: pid_t) -> Vec<pid_t> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task"));
    folder.into_iter().flatten().flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

pub fn request(kind: libc::c_uint, tid: pid_t, address: u64, data: u64) -> Result<(), Errno> {
    // SAFETY: the callers pass requests whose `data` is a number, or points to an object of theirs of the size that the
    // kernel fills for that request.
    match unsafe { libc::ptrace(kind, tid, address as *mut c_void, data as *mut c_void) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

pub fn registers(tid: pid_t) -> Result<user_regs_struct, Errno> {
    trace::registers(tid)
}

pub fn set_registers(tid: pid_t, registers: &user_regs_struct) -> Result<(), Errno> {
    trace::set_registers(tid, registers)
}

/// Reads memory of a traced process.
pub fn read(pid: pid_t, address: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::File::open(format!("/proc/{pid}/mem"))?.read_exact_at(bytes, address)
}

/// Writes memory of a traced process, also where the process itself may not.
pub fn write(pid: pid_t, address: u64, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?.write_all_at(bytes, address)
}

/// The call number of a SIGSYS that Syscall User Dispatch raised.
pub fn dispatched_call(tid: pid_t) -> Option<i64> {
    /// `SYS_USER_DISPATCH` of `siginfo.h`.
    const USER_DISPATCH: i32 = 2;
    let mut info = [0_i32; 32];
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as u64).ok()?;
    // si_signo, si_errno, si_code, padding, then the address of the call and its number.
    (info[2] == USER_DISPATCH).then_some(i64::from(info[6]))
}
