//! Memory that a process shares with others because it was there when one of them made the other.

use crate::foreign_filter;
use libc::pid_t;
use outlast_filter::needs::wish;

/// Do two processes have one and the same memory (vfork)?
pub fn have_one_memory(one: pid_t, other: pid_t) -> bool {
    const KCMP_VM: libc::c_int = 1;
    compare(one, other, KCMP_VM) == Some(0)
}

/// Has a thread descriptors, or a working directory, that are not those of the other?
pub fn have_own_files(one: pid_t, other: pid_t) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    const KCMP_FS: libc::c_int = 3;
    [KCMP_FILES, KCMP_FS].into_iter().any(|what| compare(one, other, what) > Some(0))
}

/// 0: it is the same; none: nobody may ask.
fn compare(one: pid_t, other: pid_t, what: libc::c_int) -> Option<libc::c_long> {
    // SAFETY: compares only.
    foreign_filter::lets(wish::KCMP).then(|| unsafe { libc::syscall(libc::SYS_kcmp, one, other, what, 0, 0) })
}

/// Does a process other than this one map the same shared anonymous memory? `file`: device and inode, as in /proc/PID/maps. What a
/// process that we may not look into has mapped is not known; it has other rights than one that we may.
pub fn is_mapped_elsewhere(pid: pid_t, file: [Option<&str>; 2]) -> bool {
    let [Some(device), Some(inode)] = file else { return true };
    let wanted = format!(" {device} {inode} ");
    let own = pid.to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = processes.filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name != own && name.bytes().all(|byte| byte.is_ascii_digit()))
    });
    others
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("maps")).ok())
        .any(|maps| maps.lines().any(|line| line.contains(&wanted)))
}
