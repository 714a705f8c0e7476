//! Where executions are seen: as few of them as the policies allow.

use crate::execs::{Error, Execs, Place};
use outlast_policy::Policies;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is seen now.
#[derive(Default)]
pub struct Marks {
    folders: BTreeSet<PathBuf>,
    file_systems: BTreeSet<PathBuf>,
}

impl Marks {
    /// Sees what these policies may be about, and no more. What could not be: the folder, and why.
    pub fn follow(&mut self, execs: &Execs, policies: &Policies) -> Vec<(PathBuf, Error)> {
        let (folders, file_systems) = match policies.folders() {
            Some(folders) => (folders, BTreeSet::new()),
            None => (BTreeSet::new(), file_systems()),
        };
        let mut failed = Vec::new();
        let changed = change(&mut self.folders, folders, |path, seen| execs.mark(&Place::Folder(path), seen));
        failed.extend(changed);
        let changed =
            change(&mut self.file_systems, file_systems, |path, seen| execs.mark(&Place::FileSystem(path), seen));
        failed.extend(changed);
        failed
    }
}

/// Marks those that are new, and unmarks those that are gone.
fn change(
    old: &mut BTreeSet<PathBuf>,
    new: BTreeSet<PathBuf>,
    mark: impl Fn(&Path, bool) -> Result<(), Error>,
) -> Vec<(PathBuf, Error)> {
    for path in old.difference(&new) {
        // A folder that was removed has lost its mark with it.
        let _ = mark(path, false);
    }
    let mut failed = Vec::new();
    let seen = new.into_iter().filter(|path| match mark(path, true) {
        Ok(()) => true,
        Err(e) => {
            failed.push((path.clone(), e));
            false
        }
    });
    *old = seen.collect();
    failed
}

/// Where file systems are mounted from which something may be executed.
fn file_systems() -> BTreeSet<PathBuf> {
    const WITHOUT_PROGRAMS: [&str; 12] = [
        "proc",
        "sysfs",
        "cgroup",
        "cgroup2",
        "devpts",
        "mqueue",
        "tracefs",
        "debugfs",
        "securityfs",
        "bpf",
        "pstore",
        "configfs",
    ];
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let may = !WITHOUT_PROGRAMS.contains(&kind) && !options.split(',').any(|option| option == "noexec");
        may.then(|| PathBuf::from(path.replace("\\040", " ")))
    });
    mounts.collect()
}
