//! What this process may ask of the kernel.

use rustix::thread::CapabilitySet;

/// Whether a clone may be given a process id (`set_tid`).
pub fn may_choose_pid() -> bool {
    let wanted = CapabilitySet::CHECKPOINT_RESTORE | CapabilitySet::SYS_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.intersects(wanted))
}

/// Whether the kernel can note which pages were written (asynchronous write protection and its scan: Linux 6.7).
pub fn kernel_notes_written_pages() -> bool {
    kernel_is_at_least(6, 7)
}

/// Whether this is that version of Linux or a later one.
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (major, minor)
}
