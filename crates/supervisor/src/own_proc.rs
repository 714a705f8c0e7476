//! A folder of processes, as /proc is, for a program whose root has none.
//!
//! It is mounted nowhere: no way leads from it to files that the program's root hides. It shows the program nothing but processes that it
//! might trace.

use crate::foreign_filter;
use outlast_filter::needs::wish;
use rustix::io::Errno;
use rustix::mount::{
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags as Attributes,
};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// One for the process, if it needs it and we may make it.
pub fn needed_by(pid: libc::pid_t) -> Option<OwnedFd> {
    let own = PathBuf::from(format!("/proc/{pid}/root/proc/self/maps"));
    let is_missing = !own.try_exists().unwrap_or(true);
    (is_missing && wish::OWN_PROC.into_iter().all(foreign_filter::lets)).then(make).and_then(Result::ok)
}

fn make() -> Result<OwnedFd, Errno> {
    let system = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "hidepid", "ptraceable")?;
    fsconfig_set_string(&system, "subset", "pid")?;
    fsconfig_create(&system)?;
    let attributes = Attributes::MOUNT_ATTR_NOSUID | Attributes::MOUNT_ATTR_NODEV | Attributes::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
