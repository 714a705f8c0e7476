//! What this process may ask of the kernel.

use crate::foreign_filter;
use rustix::thread::CapabilitySet;

/// Whether a clone may be given a process id (`set_tid`).
pub fn may_choose_pid() -> bool {
    let wanted = CapabilitySet::CHECKPOINT_RESTORE | CapabilitySet::SYS_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.intersects(wanted))
}

/// Whether the kernel can note which pages were written: asynchronous write protection and its scan are in Linux since 6.7, and take a
/// userfaultfd, which containers forbid.
pub fn kernel_notes_written_pages() -> bool {
    kernel_is_at_least(6, 7) && may_have_userfaultfd()
}

/// Whether a process like this one may have a userfaultfd, if only for faults in user mode.
pub fn may_have_userfaultfd() -> bool {
    const UFFD_USER_MODE_ONLY: libc::c_int = 1;
    if !foreign_filter::lets(libc::SYS_userfaultfd as u32) {
        return false;
    }
    // SAFETY: makes a descriptor, or none.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) };
    // SAFETY: the descriptor is new, and nobody else's.
    fd >= 0 && unsafe { libc::close(fd as libc::c_int) } == 0
}

/// Whether this is that version of Linux or a later one.
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (major, minor)
}
