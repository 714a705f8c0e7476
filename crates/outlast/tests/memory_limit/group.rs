//! A memory control group of a test's own, of whichever version the machine has.

use crate::support::until;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Removed with the value; whoever is still in it is ended first.
pub struct Group {
    folder: PathBuf,
    limit: &'static str,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Group {
    /// None, and a line that says so, where this user may make none.
    pub fn new(limit: u64) -> Option<Group> {
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/unified", "memory.max"),
        ];
        let name = format!("outlast-test.{}.{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        for (top, file) in places {
            let group = Group { folder: Path::new(top).join(&name), limit: file };
            if fs::create_dir(&group.folder).is_ok() && group.folder.join(file).exists() {
                group.allow(limit);
                // A machine with swap would swap.
                for (file, none) in [("memory.swap.max", "0"), ("memory.swappiness", "0")] {
                    let _ = fs::write(group.folder.join(file), none);
                }
                return Some(group);
            }
            let _ = fs::remove_dir(&group.folder);
        }
        println!("skipped: no memory control group can be made here");
        None
    }

    pub fn allow(&self, bytes: u64) {
        fs::write(self.folder.join(self.limit), bytes.to_string()).unwrap();
    }

    /// Has a command begin in the group.
    pub fn starts(&self, command: &mut Command) {
        let members = fs::File::options().write(true).open(self.members()).unwrap();
        // SAFETY: one system call on a descriptor that the closure keeps.
        unsafe {
            command.pre_exec(move || match io::Write::write(&mut &members, b"0") {
                Ok(_) => Ok(()),
                Err(e) => Err(e),
            });
        }
    }

    /// Puts a process into the group.
    pub fn take(&self, pid: &serde_json::Value) {
        fs::write(self.members(), pid.to_string()).unwrap();
    }

    pub fn has(&self, pid: &serde_json::Value) -> bool {
        self.pids().contains(&pid.to_string())
    }

    fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    fn pids(&self) -> Vec<String> {
        fs::read_to_string(self.members()).unwrap_or_default().lines().map(String::from).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("an empty group", || {
            for pid in self.pids() {
                // SAFETY: plain system call; only processes of this test are in its group.
                unsafe { libc::kill(pid.parse().unwrap(), libc::SIGKILL) };
            }
            fs::remove_dir(&self.folder).is_ok()
        });
    }
}
