//! The private process tree of a test: everything it started, found by parenthood, ended by pid.
//!
//! Above the test's process stands a *keeper*, a subreaper that does nothing but reap: what the tree orphans becomes its
//! child, and no process id stays taken by a dead orphan (outlast may want that very id back at once).
//!
//! A process is only ever killed through a pidfd that was checked to belong to a descendant *after* it was opened:
//! process ids are used again, on a small `pid_max` within seconds.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

/// The keeper's process id; without one, this process's own.
static ROOT: AtomicI32 = AtomicI32::new(0);

/// Says that this process's parent is its keeper.
pub fn has_keeper() {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    ROOT.store(parent, Relaxed);
}

fn root() -> i32 {
    match ROOT.load(Relaxed) {
        0 => std::process::id() as i32,
        keeper => keeper,
    }
}

/// What `/proc/PID/stat` says.
#[derive(Clone, Debug)]
pub struct Stat {
    pub pid: i32,
    pub comm: String,
    pub state: char,
    pub parent: i32,
}

/// Reads one process's line; `None` once it is gone.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    let line = String::from_utf8_lossy(line);
    // The name may hold spaces and parentheses: the last one closes it.
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let mut rest = line[close + 1..].split_whitespace();
    Some(Stat {
        pid: line[..open].trim().parse().ok()?,
        comm: line[open + 1..close].to_string(),
        state: rest.next()?.chars().next()?,
        parent: rest.next()?.parse().ok()?,
    })
}

/// A process of the tree, held by a descriptor: its number cannot come to mean another process.
pub struct Victim {
    pub pid: i32,
    fd: OwnedFd,
}

impl Victim {
    /// Opens `pid` if it lives and belongs to the tree.
    pub fn open(pid: i32) -> Option<Victim> {
        // Control pages also hold 0 for nobody and negative error numbers.
        let number = (pid > 0).then(|| Pid::from_raw(pid))??;
        let fd = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let victim = Victim { pid, fd };
        // Checked after opening: had the number been handed on before, the descriptor would be the stranger's.
        (is_descendant(pid) && !victim.is_dead()).then_some(victim)
    }

    /// Whether it has ended (it may still be a zombie).
    pub fn is_dead(&self) -> bool {
        self.await_death(0)
    }

    /// Waits at most `ms` milliseconds for its end; true if it has ended.
    pub fn await_death(&self, ms: u32) -> bool {
        let limit = Timespec { tv_sec: (ms / 1000).into(), tv_nsec: i64::from(ms % 1000) * 1_000_000 };
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        matches!(poll(&mut polled, Some(&limit)), Ok(n) if n > 0)
    }

    /// Sends a signal; false if the process was gone.
    pub fn strike(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.fd, signal).is_ok()
    }
}

/// Whether `pid` belongs to the test's tree, this process and its keeper not counted.
pub fn is_descendant(pid: i32) -> bool {
    let (root, me) = (root(), std::process::id() as i32);
    if pid == me {
        return false;
    }
    let mut at = pid;
    // A tree deeper than this is none that a test builds.
    for _ in 0..64 {
        match stat(at) {
            Some(s) if s.parent == root => return true,
            Some(s) if s.parent > 1 => at = s.parent,
            _ => return false,
        }
    }
    false
}

/// Every process of the test's tree, zombies too, parents before children.
pub fn descendants() -> Vec<Stat> {
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        if let Some(s) = stat(pid) {
            children.entry(s.parent).or_default().push(s);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![root()];
    let me = std::process::id() as i32;
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            if child.pid != me {
                found.push(child);
            }
        }
    }
    found
}

/// Ends every process of the tree; returns what was still there.
pub fn sweep() -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    // A supervisor may respawn what was killed before itself; each round kills parents first, and rounds are bounded.
    for _ in 0..50 {
        let alive: Vec<Stat> = descendants().into_iter().filter(|s| s.state != 'Z').collect();
        let victims: Vec<Victim> = alive.iter().filter_map(|s| Victim::open(s.pid)).collect();
        for victim in &victims {
            victim.strike(Signal::KILL);
        }
        for victim in &victims {
            victim.await_death(1000);
        }
        for s in alive {
            if !found.iter().any(|f| f.pid == s.pid) {
                found.push(s);
            }
        }
        if victims.is_empty() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let s = parse_stat(b"42 (a) (b) S 7 42 42 0").unwrap();
        assert_eq!((s.pid, s.comm.as_str(), s.state, s.parent), (42, "a) (b", 'S', 7));
    }

    #[test]
    fn init_is_no_descendant() {
        assert!(!is_descendant(1));
        assert!(Victim::open(1).is_none());
    }
}
