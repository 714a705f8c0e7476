//! What this process may ask of the kernel.

use rustix::thread::CapabilitySet;

/// Whether a clone may be given a process id (`set_tid`).
pub fn may_choose_pid() -> bool {
    let wanted = CapabilitySet::CHECKPOINT_RESTORE | CapabilitySet::SYS_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.intersects(wanted))
}
