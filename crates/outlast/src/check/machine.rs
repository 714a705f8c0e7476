//! The kernel, the limits of this user, and the room for stores.

use super::advice;
use super::finding::Finding;
use outlast_image::degradation::Degradation;
use outlast_supervisor::control_group::Groups;
use outlast_supervisor::privileges;
use outlast_supervisor::state_folder::StateFolder;
use rustix::fs::statvfs;
use rustix::process::{getrlimit, Resource};

/// With less room than this a store of any use does not fit.
const ROOM: u64 = 64 << 20;
/// A limit that programs with a gigabyte or more would meet: the engine reserves addresses beside them.
const ADDRESS_SPACE: u64 = 1 << 40;

pub fn look(state: &StateFolder) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match privileges::kernel_notes_written_pages() {
        true => Finding::kept("written-pages", "the kernel notes which pages are written"),
        false => by_signal(),
    });
    if !privileges::may_choose_pid() {
        findings.push(Finding::degradation(Degradation::PidChanged));
    }
    findings.extend(room(state));
    findings.extend(memory_limit());
    if getrlimit(Resource::As).current.is_some_and(|limit| limit < ADDRESS_SPACE) {
        findings.push(Finding::degradation(Degradation::AddressTaken));
    }
    findings
}

fn by_signal() -> Finding {
    let (why, advice) = match privileges::may_have_userfaultfd() {
        true => ("before Linux 6.7", "Linux 6.7 or later"),
        false => ("without userfaultfd", "a container profile, or a service, that permits userfaultfd"),
    };
    let text = format!("{why} written pages are found by write protection and a signal: each costs some microseconds");
    Finding::note("written-pages", text, Some(advice))
}

fn memory_limit() -> Option<Finding> {
    let limit = Groups::of(std::process::id() as i32)?.memory()?.limit()?;
    let text = format!(
        "control group {} may use {} MiB; a store in memory is charged to it, about as much as the program's own memory",
        limit.group,
        limit.bytes >> 20
    );
    Some(Finding::note("memory-limit", text, Some("a higher limit, or --store DIR on a disk")))
}

fn room(state: &StateFolder) -> Option<Finding> {
    let path = state.path();
    let system = statvfs(path).ok()?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let free = getrlimit(Resource::Fsize).current.map_or(free, |limit| limit.min(free));
    let text = format!("{} MiB for stores in {}; a program takes 1.1 times its memory", free >> 20, path.display());
    let help = advice::on(Degradation::StoreFull);
    Some(if free < ROOM { Finding::lost("store-room", text, help) } else { Finding::kept("store-room", text) })
}
