//! No row is left out without a reason.

use outlast_calls::{commands, Class, Len, TABLE};
use std::collections::BTreeSet;

const PROBED: &[&[&str]] = &[
    crate::attributes::PROBED,
    crate::commands::PROBED,
    crate::descriptors::PROBED,
    crate::identity::PROBED,
    crate::memory::PROBED,
    crate::messages::PROBED,
    crate::metadata::PROBED,
    crate::objects::PROBED,
    crate::processes::PROBED,
    crate::readiness::PROBED,
    crate::scheduling::PROBED,
    crate::signals::PROBED,
    crate::sockets::PROBED,
    crate::threads::PROBED,
    crate::time::PROBED,
    crate::transfer::PROBED,
];

/// Calls that are not made, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("sysfs", "its out-parameter is Special: a string without a bound"),
    ("clone", "would make a second process that returns here"),
    ("syslog", "would take lines of the kernel's log away from their reader"),
    ("perf_event_open", "writes only when the attribute is too large for the kernel, which then refuses it"),
];

#[test]
fn every_pure_call_and_every_out_parameter_is_probed() {
    let probed: BTreeSet<&str> = PROBED.iter().copied().flatten().copied().collect();
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|&(name, _)| name).collect();
    for row in TABLE.iter().flatten() {
        let told = !row.outs().is_empty() && row.outs().iter().all(|out| out.len != Len::Special);
        if row.class == Class::Pure || told {
            let here = probed.contains(row.name);
            assert_ne!(here, excused.contains(row.name), "{}: probed or excused, exactly one", row.name);
        }
    }
    println!("{} calls probed, {} excused", probed.len(), excused.len());
    for (name, reason) in EXCUSED {
        println!("excused: {name}: {reason}");
    }
}

/// Commands that are not made, and why.
const EXCUSED_COMMANDS: &[(&str, &str)] = &[
    ("TIOCGSOFTCAR", "needs a serial line"),
    ("TIOCMGET", "needs a serial line"),
    ("TIOCGPGRP", "needs a controlling terminal"),
    ("TIOCGSID", "needs a controlling terminal"),
    ("SIOCGIFDSTADDR", "needs a point-to-point interface"),
    ("SIOCGIFBRDADDR", "needs an interface with broadcasts"),
    ("BLKGETSIZE", "needs a block device"),
    ("BLKSSZGET", "needs a block device"),
    ("BLKGETSIZE64", "needs a block device"),
    ("ARCH_GET_GS", "class Thread: the engine answers"),
    ("ARCH_GET_XCOMP_GUEST_PERM", "is about virtual machines"),
    ("PR_SCHED_CORE", "needs simultaneous multithreading"),
];

#[test]
fn every_command_with_an_out_parameter_is_probed() {
    let probed: BTreeSet<String> = crate::commands::TESTS.iter().map(|name| name.to_uppercase()).collect();
    let excused: BTreeSet<&str> = EXCUSED_COMMANDS.iter().map(|&(name, _)| name).collect();
    for (_, row) in TABLE.iter().flatten().flat_map(|row| commands(u64::from(row.nr))) {
        let told = !row.outs().is_empty() && row.outs().iter().all(|out| out.len != Len::Special);
        let here = probed.contains(row.name);
        assert!(!told || here != excused.contains(row.name), "{}: probed or excused, exactly one", row.name);
    }
    println!("{} commands probed, {} excused", probed.len(), excused.len());
}
