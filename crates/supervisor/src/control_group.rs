//! Control groups (cgroups(7)): in which ones a process is, and what the kernel counts and allows there.

use libc::pid_t;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The memory control group of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGroup {
    /// Its folder.
    folder: PathBuf,
    /// Where the hierarchy is mounted.
    top: PathBuf,
    files: &'static Files,
}

/// How the files of a version of control groups are called.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    /// Has a line `oom_kill N`: members that the OOM killer has killed.
    events: &'static str,
    limit: &'static str,
}

static FIRST: Files = Files { events: "memory.oom_control", limit: "memory.limit_in_bytes" };
static SECOND: Files = Files { events: "memory.events.local", limit: "memory.max" };

/// What a group of the first version has for a limit when it has none: the largest multiple of a page.
const NO_LIMIT: u64 = i64::MAX as u64 & !4095;

/// A limit to memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the group that has it: the process's own or one above.
    pub group: String,
    pub bytes: u64,
}

/// The control groups of a process, as the kernel lists them: a line for each hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(String);

impl Groups {
    pub fn of(pid: pid_t) -> Option<Self> {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).ok().map(Self)
    }

    /// Of a process that ended and was not yet reaped. Hierarchies of the first version have forgotten it by then.
    pub fn of_dead(pid: pid_t) -> Option<Self> {
        Self::of(pid).filter(|groups| !groups.forget())
    }

    /// Are they forgotten as soon as the process is dead?
    pub fn forget(&self) -> bool {
        self.lines().any(|(controllers, _)| !controllers.is_empty())
    }

    /// The group that counts and limits memory. None: memory is not controlled, or this cannot be seen from here.
    pub fn memory(&self) -> Option<MemoryGroup> {
        self.memory_among(&mounts()?)
    }

    fn memory_among(&self, mounts: &str) -> Option<MemoryGroup> {
        let first = self.lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
        let files = if first.is_some() { &FIRST } else { &SECOND };
        let line = first.or_else(|| self.lines().find(|(controllers, _)| controllers.is_empty()))?;
        let (folder, top) = place(line, mounts)?;
        Some(MemoryGroup { folder, top, files })
    }

    /// Puts a process into these groups where it is in others; false if that cannot be done everywhere.
    pub fn take(&self, pid: pid_t) -> bool {
        let Some(other) = Self::of(pid).filter(|other| other != self) else { return true };
        let Some(mounts) = mounts() else { return false };
        let put = |line| {
            let (folder, _) = place(line, &mounts)?;
            fs::write(folder.join("cgroup.procs"), pid.to_string()).ok()
        };
        let different: Vec<_> = self.lines().filter(|line| !other.lines().any(|theirs| theirs == *line)).collect();
        different.into_iter().filter(|line| put(*line).is_none()).count() == 0
    }

    /// Controllers and path.
    fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
    }
}

impl MemoryGroup {
    #[cfg(test)]
    pub fn second(folder: &Path, top: &Path) -> Self {
        Self { folder: folder.into(), top: top.into(), files: &SECOND }
    }

    /// How many of its members the OOM killer has killed so far. A group without figures is part of the one above.
    pub fn kills(&self) -> Option<u64> {
        let (_, events) = self.upwards().find_map(|folder| {
            let events = fs::read_to_string(folder.join(self.files.events)).ok()?;
            Some((folder, events))
        })?;
        number_of(&events, "oom_kill")
    }

    /// The lowest limit on the way up.
    pub fn limit(&self) -> Option<Limit> {
        let limits = self.upwards().filter_map(|folder| {
            let bytes = fs::read_to_string(folder.join(self.files.limit)).ok()?.trim().parse().ok()?;
            let group = Path::new("/").join(folder.strip_prefix(&self.top).ok()?).display().to_string();
            (bytes < NO_LIMIT).then_some(Limit { group, bytes })
        });
        limits.min_by_key(|limit| limit.bytes)
    }

    fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.folder.ancestors().take_while(|folder| folder.starts_with(&self.top))
    }
}

/// How many processes the OOM killer has killed on this machine.
pub fn kills_of_the_machine() -> Option<u64> {
    number_of(&fs::read_to_string("/proc/vmstat").ok()?, "oom_kill")
}

fn number_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// How long what is mounted counts as known: a tree of processes asks for each of them.
const FRESH: Duration = Duration::from_secs(1);

/// What is mounted where, as mountinfo has it.
fn mounts() -> Option<Rc<str>> {
    thread_local!(static KNOWN: RefCell<Option<(Instant, Rc<str>)>> = const { RefCell::new(None) });
    KNOWN.with_borrow_mut(|known| match known {
        Some((read, text)) if read.elapsed() < FRESH => Some(Rc::clone(text)),
        _ => {
            let text: Rc<str> = fs::read_to_string("/proc/self/mountinfo").ok()?.into();
            *known = Some((Instant::now(), Rc::clone(&text)));
            Some(text)
        }
    })
}

/// The folder of a group, and where its hierarchy is mounted.
fn place((controllers, path): (&str, &str), mounts: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (about, how) = line.split_once(" - ")?;
        let mut about = about.split(' ').skip(3);
        let (root, top) = (about.next()?, about.next()?);
        let mut how = how.split(' ');
        let is_wanted = match how.next()? {
            "cgroup" => {
                let options = how.nth(1)?;
                !controllers.is_empty() && controllers.split(',').all(|name| options.split(',').any(|o| o == name))
            }
            "cgroup2" => controllers.is_empty(),
            _ => false,
        };
        let below = Path::new(path).strip_prefix(root).ok()?;
        is_wanted.then(|| (Path::new(top).join(below), top.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 /docker/4 /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn folder(groups: &str, mounts: &str) -> Option<PathBuf> {
        Groups(groups.into()).memory_among(mounts).map(|group| group.folder)
    }

    #[test]
    fn the_first_version_counts_where_it_has_the_controller() {
        let groups = "5:cpuset:/a\n4:memory:/docker/4/b\n0::/c\n";
        assert_eq!(folder(groups, MOUNTS), Some("/sys/fs/cgroup/memory/b".into()));
    }

    #[test]
    fn the_second_version_counts_otherwise() {
        assert_eq!(folder("5:cpuset:/a\n0::/c/d\n", MOUNTS), Some("/sys/fs/cgroup/unified/c/d".into()));
        assert_eq!(folder("0::/\n", MOUNTS), Some("/sys/fs/cgroup/unified/".into()));
    }

    #[test]
    fn a_group_that_is_not_mounted_here_is_none() {
        assert_eq!(folder("4:memory:/elsewhere\n", MOUNTS), None);
        assert_eq!(folder("4:memory:/docker/4\n", ""), None);
        assert_eq!(folder("", MOUNTS), None);
    }

    #[test]
    fn figures_are_found_by_their_whole_name() {
        assert_eq!(number_of("oom 7\noom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(number_of("oom_kill_disable 0\n", "oom_kill"), None);
    }

    #[test]
    fn the_lowest_limit_on_the_way_up_counts() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        let group = MemoryGroup::second(&folder, top.path());
        assert_eq!((group.limit(), group.kills()), (None, None));
        fs::write(folder.join("memory.max"), "max\n").unwrap();
        fs::write(top.path().join("a/memory.max"), "4096\n").unwrap();
        fs::write(top.path().join("memory.max"), "8192\n").unwrap();
        fs::write(top.path().join("a/memory.events.local"), "low 0\noom 4\noom_kill 2\noom_group_kill 1\n").unwrap();
        assert_eq!(group.limit(), Some(Limit { group: "/a".into(), bytes: 4096 }));
        assert_eq!(group.kills(), Some(2));
    }
}
