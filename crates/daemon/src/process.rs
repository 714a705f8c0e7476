//! What the kernel says about a process.

use libc::pid_t;
use outlast_supervisor::say::say;
use rustix::fs::stat;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file, whatever its name.
pub type Identity = (u64, u64);

/// The file of this program.
pub struct Ours {
    pub path: PathBuf,
    /// Which one that was in the beginning; another one may have been installed since.
    pub identity: Option<Identity>,
}

impl Ours {
    pub fn new(path: PathBuf) -> Self {
        Self { identity: identity(&path), path }
    }

    /// Executes the outlast that was installed in place of this one, if one was, with the same arguments, when `ready` has returned; that is done
    /// until then. Returns if there is none, or if that fails.
    pub fn become_installed<T>(&self, ready: impl FnOnce() -> T) {
        if !self.is_replaced() {
            return;
        }
        let _ready = ready();
        let e = Command::new(&self.path).args(std::env::args_os().skip(1)).exec();
        say(format_args!("daemon: cannot execute {}, goes on as it is: {e}", self.path.display()));
    }

    /// Whether another one has its place.
    pub fn is_replaced(&self) -> bool {
        identity(&self.path).is_some_and(|there| Some(there) != self.identity)
    }
}

/// The file at this path, links followed.
pub fn identity(path: impl AsRef<Path>) -> Option<Identity> {
    let stat = stat(path.as_ref()).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// The path of a file that we have open.
pub fn descriptor(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The file that a process runs.
pub fn executable(pid: pid_t) -> Option<Identity> {
    identity(format!("/proc/{pid}/exe"))
}

/// The same, by the name that it has now.
pub fn executable_path(pid: pid_t) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Whether it is, or may be, under filters of system calls.
pub fn is_filtered(pid: pid_t) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Seccomp:")).is_none_or(|mode| mode.trim() != "0")
}

/// Its effective user, if nobody traces it.
pub fn user_of_untraced(pid: pid_t) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let is_traced = field("TracerPid:")?.trim() != "0";
    field("Uid:")?.split_whitespace().nth(1)?.parse().ok().filter(|_| !is_traced)
}

/// Whether a thread of ours sleeps.
pub fn sleeps(thread: pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

/// Its effective user, and whether that is all it is: no other one besides, no privileges of its file's.
pub fn user(pid: pid_t) -> Option<(u32, bool)> {
    let ids =
        |name: &str| -> Option<Vec<u32>> { field(pid, name)?.split_whitespace().map(|id| id.parse().ok()).collect() };
    let (users, groups) = (ids("Uid:")?, ids("Gid:")?);
    let is_one = |ids: &[u32]| ids.iter().all(|id| *id == ids[0]);
    let is_plain = is_one(&users) && is_one(&groups) && auxiliary(pid, libc::AT_SECURE) == Some(0);
    Some((*users.get(1)?, is_plain))
}

/// Its effective group.
pub fn group(pid: pid_t) -> Option<u32> {
    field(pid, "Gid:")?.split_whitespace().nth(1)?.parse().ok()
}

/// What tells where a user's state folder is.
const PLACES: [&str; 3] = ["OUTLAST_STATE_DIR", "XDG_RUNTIME_DIR", "HOME"];

/// What leads outlast to its user's programs, of the environment that it began with.
pub fn places(pid: pid_t) -> Vec<(&'static str, OsString)> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variable = |name: &'static str| {
        let mut words = environ.split(|byte| *byte == 0);
        let value = words.find_map(|word| word.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some((name, OsStr::from_bytes(value).to_os_string()))
    };
    PLACES.into_iter().filter_map(variable).collect()
}

fn field(pid: pid_t, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(String::from)
}

/// Its control group, from the root of the unified hierarchy, or of systemd's own.
pub fn control_group(pid: pid_t) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |prefix: &str| groups.lines().find_map(|line| Some(line.split_once(prefix)?.1.to_string()));
    of("0::").filter(|group| group != "/").or_else(|| of(":name=systemd:")).or_else(|| Some("/".into()))
}

/// How it is called: by the name that was executed, at most 15 bytes of it.
pub fn comm(pid: pid_t) -> Option<Vec<u8>> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(name.strip_suffix(b"\n").unwrap_or(&name).into())
}

/// The path that it was told to execute: a script's, if it was one.
pub fn told_to_execute(pid: pid_t) -> Option<PathBuf> {
    let address = auxiliary(pid, libc::AT_EXECFN)?;
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let mut len = 0;
    let mut memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    std::io::Seek::seek(&mut memory, std::io::SeekFrom::Start(address)).ok()?;
    while !bytes[..len].contains(&0) && len < bytes.len() {
        // Its end may lie close to that of the stack.
        match memory.read(&mut bytes[len..]) {
            Ok(n) if n > 0 => len += n,
            _ => break,
        }
    }
    let end = bytes[..len].iter().position(|byte| *byte == 0)?;
    Some(OsStr::from_bytes(&bytes[..end]).into())
}

/// A path as the process would follow it.
pub fn seen_by(pid: pid_t, path: &Path) -> PathBuf {
    match path.strip_prefix("/") {
        Ok(path) => Path::new(&format!("/proc/{pid}/root")).join(path),
        Err(_) => Path::new(&format!("/proc/{pid}/cwd")).join(path),
    }
}

fn auxiliary(pid: pid_t, kind: u64) -> Option<u64> {
    let bytes = std::fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight"))).collect();
    words.chunks_exact(2).find(|pair| pair[0] == kind).map(|pair| pair[1])
}
