//! A memory control group for one run, of whichever version the machine has.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Removed with the value; the run has ended by then.
pub struct Group {
    folder: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

const PLACES: [(&str, &str, &str); 3] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/unified", "memory.max", "memory.current"),
];

impl Group {
    /// None where this user may make none.
    pub fn make(name: &str) -> Option<Group> {
        PLACES.iter().find_map(|(top, limit, usage)| {
            let group = Group { folder: Path::new(top).join(name), limit, usage };
            fs::create_dir(&group.folder).ok()?;
            group.folder.join(limit).exists().then_some(group)
        })
    }

    /// The file that a process writes 0 to so as to be a member.
    pub fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Has the limit fall to what is used now; true if it did.
    pub fn tighten(&self) -> bool {
        // What is used changes meanwhile, and version 1 refuses a limit that it cannot reach.
        (0..64).any(|_| {
            let usage = fs::read_to_string(self.folder.join(self.usage)).unwrap_or_default();
            let limited = fs::write(self.folder.join(self.limit), usage.trim());
            std::thread::sleep(Duration::from_micros(200));
            limited.is_ok()
        })
    }

    pub fn release(&self) {
        let none = if self.limit == "memory.max" { "max" } else { "-1" };
        let _ = fs::write(self.folder.join(self.limit), none);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..200 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
