//! What a Docker container takes from root: capabilities and system calls.

use std::collections::BTreeMap;
use std::io;

use rustix::thread::{capabilities, set_capabilities, CapabilitySet, CapabilitySets};
use seccompiler::{apply_filter, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Capabilities that Docker leaves to root in a container.
const LEFT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::AUDIT_WRITE);

/// x86-64 numbers of what Docker's default profile (version 25 and later) refuses to a container without extra
/// capabilities, with EPERM. `ptrace` is allowed since kernels of 4.8.
const REFUSED: &[(i64, &str)] = &[
    (134, "uselib"),
    (136, "ustat"),
    (139, "sysfs"),
    (153, "vhangup"),
    (155, "pivot_root"),
    (156, "_sysctl"),
    (163, "acct"),
    (164, "settimeofday"),
    (165, "mount"),
    (166, "umount2"),
    (167, "swapon"),
    (168, "swapoff"),
    (169, "reboot"),
    (170, "sethostname"),
    (171, "setdomainname"),
    (172, "iopl"),
    (173, "ioperm"),
    (174, "create_module"),
    (175, "init_module"),
    (176, "delete_module"),
    (177, "get_kernel_syms"),
    (178, "query_module"),
    (179, "quotactl"),
    (180, "nfsservctl"),
    (212, "lookup_dcookie"),
    (227, "clock_settime"),
    (237, "mbind"),
    (238, "set_mempolicy"),
    (239, "get_mempolicy"),
    (246, "kexec_load"),
    (248, "add_key"),
    (249, "request_key"),
    (250, "keyctl"),
    (256, "migrate_pages"),
    (272, "unshare"),
    (279, "move_pages"),
    (298, "perf_event_open"),
    (300, "fanotify_init"),
    (304, "open_by_handle_at"),
    (308, "setns"),
    (312, "kcmp"),
    (313, "finit_module"),
    (320, "kexec_file_load"),
    (321, "bpf"),
    (323, "userfaultfd"),
    (425, "io_uring_setup"),
    (426, "io_uring_enter"),
    (427, "io_uring_register"),
    (428, "open_tree"),
    (429, "move_mount"),
    (430, "fsopen"),
    (431, "fsconfig"),
    (432, "fsmount"),
    (433, "fspick"),
    (438, "pidfd_getfd"),
    (440, "process_madvise"),
    (442, "mount_setattr"),
    (443, "quotactl_fd"),
];

/// `clone3` gives ENOSYS, so that callers fall back to `clone`, whose flags a filter can read.
const CLONE3: i64 = 435;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// From now on this process and all it starts live under the container's rules.
pub fn enter() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        drop_capabilities()?;
    }
    // Two filters: each has one action for what it names.
    for program in [filter(REFUSED.iter().map(|(nr, _)| *nr), EPERM)?, filter([CLONE3], ENOSYS)?] {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn filter(numbers: impl IntoIterator<Item = i64>, errno: u32) -> io::Result<BpfProgram> {
    let rules: BTreeMap<i64, Vec<_>> = numbers.into_iter().map(|nr| (nr, Vec::new())).collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), TargetArch::x86_64);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn drop_capabilities() -> io::Result<()> {
    let before = capabilities(None)?;
    for capability in CapabilitySet::all().difference(LEFT).iter().filter(|c| before.permitted.contains(*c)) {
        rustix::thread::remove_capability_from_bounding_set(capability)?;
    }
    let left = before.permitted.intersection(LEFT);
    set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_doubles() {
        assert!(REFUSED.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn the_filter_refuses_what_a_container_may_not() {
        // A filter cannot be taken off: a thread of its own carries it to its end.
        let refused = std::thread::spawn(|| {
            apply_filter(&filter(REFUSED.iter().map(|(nr, _)| *nr), EPERM).unwrap()).unwrap();
            rustix::system::sethostname(b"nowhere")
        });
        assert_eq!(refused.join().unwrap(), Err(rustix::io::Errno::PERM));
    }
}
