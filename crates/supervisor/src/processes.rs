//! What the kernel tells about other processes, and what they hold.

use crate::end::End;
use crate::foreign_filter;
use libc::pid_t;
use outlast_filter::needs::wish;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// No line in which the kernel tells of a process or a thread is longer, in bytes.
const LONGEST_LINE: usize = 1024;

/// A copy of a descriptor of another process, which we must be allowed to trace.
pub fn descriptor_of(pid: pid_t, fd: i32) -> Result<OwnedFd, Errno> {
    if !foreign_filter::lets(wish::PIDFD_GETFD) {
        return Err(Errno::PERM);
    }
    let pidfd = open(pid)?;
    pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty())
}

/// A descriptor that refers to the process.
pub fn open(pid: pid_t) -> Result<OwnedFd, Errno> {
    pidfd_open(Pid::from_raw(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

/// The descriptor numbers that the process uses.
pub fn descriptors(pid: pid_t) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// One more than the highest descriptor number the process may use.
pub fn descriptor_limit(pid: pid_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills `limit`, which is ours, and changes nothing.
    let r = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit) };
    if r == 0 {
        limit.rlim_cur
    } else {
        u64::MAX
    }
}

/// How a process that is not a child of ours ended, where the kernel tells: to whoever may trace it while it waits for
/// its parent, and (Linux 6.15) through its pidfd afterwards.
pub fn end_of(pid: pid_t, pidfd: BorrowedFd<'_>) -> Option<End> {
    waiting_status(pid).or_else(|| reaped_status(pidfd)).and_then(End::of)
}

/// The wait status of a process that ended and was not yet reaped: the last field of its stat file.
fn waiting_status(pid: pid_t) -> Option<i32> {
    match stat_field(pid, 3)?.as_str() {
        "Z" => stat_field(pid, 52)?.parse().ok(),
        _ => None,
    }
}

/// struct pidfd_info, first version, and the request that fills it.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

fn reaped_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    const EXIT: u64 = 1 << 3;
    const LENGTH: libc::c_ulong = std::mem::size_of::<PidfdInfo>() as libc::c_ulong;
    // _IOWR(0xff, 11, struct pidfd_info)
    const GET_INFO: libc::c_ulong = (3 << 30) | (LENGTH << 16) | (0xff << 8) | 11;
    let mut info = PidfdInfo { mask: EXIT, ..Default::default() };
    // SAFETY: the request's size is that of `info`, which the kernel fills.
    let r = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, &mut info) };
    (r == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// Children of a process, those that ended but are not reaped included.
pub fn children_of(pid: pid_t) -> Vec<pid_t> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Whether the process has the same file open under this number as we have as `file`.
pub fn holds(pid: pid_t, fd: i32, file: BorrowedFd<'_>) -> bool {
    let same = |a: rustix::fs::Stat, b: rustix::fs::Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    match (rustix::fs::stat(format!("/proc/{pid}/fd/{fd}")), rustix::fs::fstat(file)) {
        (Ok(theirs), Ok(ours)) => same(theirs, ours),
        _ => false,
    }
}

/// Whether the process has that file mapped at this address.
pub fn maps(pid: pid_t, address: u64, file: BorrowedFd<'_>) -> bool {
    let (Ok(text), Ok(ours)) = (std::fs::read(format!("/proc/{pid}/maps")), rustix::fs::fstat(file)) else {
        return false;
    };
    // Addresses, permissions, offset, device, inode, path.
    let (start, inode) = (format!("{address:x}-"), ours.st_ino.to_string());
    text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(start.as_bytes())).any(|line| {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        fields.nth(4) == Some(inode.as_bytes())
    })
}

/// A file in which the kernel says one line, all at once: by three calls, as it is asked several times a second.
pub fn line_of(path: String) -> Option<String> {
    let mut line = vec![0; LONGEST_LINE];
    let length = File::open(path).ok()?.read(&mut line).ok()?;
    line.truncate(length);
    String::from_utf8(line).ok()
}

/// Fields of a process's stat file from the third on: state, parent, …
fn stat_field(pid: pid_t, field: usize) -> Option<String> {
    let stat = line_of(format!("/proc/{pid}/stat"))?;
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(field - 3).map(String::from)
}

/// When the process started, in clock ticks since boot.
pub fn start_time(pid: pid_t) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// The process's group; -1 if there is no such process.
pub fn group_of(pid: pid_t) -> pid_t {
    // SAFETY: plain system call.
    unsafe { libc::getpgid(pid) }
}

/// Puts a process of ours into a group: for the kernel only we are its parent.
pub fn set_group(pid: pid_t, group: pid_t) -> Result<(), Errno> {
    // SAFETY: plain system call; where the number is nobody's of ours any more it is refused.
    match unsafe { libc::setpgid(pid, group) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::SRCH)),
    }
}

/// What a process calls itself.
pub fn name_of(pid: pid_t) -> Option<String> {
    line_of(format!("/proc/{pid}/comm")).map(|name| name.trim_end().to_string())
}

/// All processes that there are.
pub fn all() -> impl Iterator<Item = pid_t> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The threads of a process, the first one first.
pub fn threads_of(pid: pid_t) -> Vec<pid_t> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<pid_t> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_by_key(|tid| (*tid != pid, *tid));
    threads
}

/// Signals that wait for a process or its first thread, as a mask; 0 once the kernel does not tell any more.
pub fn pending_signals(pid: pid_t) -> u64 {
    pending_signals_of_thread(pid)
}

/// Signals that wait for a thread or its process.
pub fn pending_signals_of_thread(tid: pid_t) -> u64 {
    signals_of(tid).pending
}

/// What the kernel tells of a process's signals, as masks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    pub pending: u64,
    pub ignored: u64,
}

pub fn signals_of(pid: pid_t) -> Signals {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let mut signals = Signals::default();
    for (name, mask) in fields.filter_map(|(name, mask)| Some((name, u64::from_str_radix(mask.trim(), 16).ok()?))) {
        match name {
            "SigPnd" | "ShdPnd" => signals.pending |= mask,
            "SigIgn" => signals.ignored = mask,
            _ => (),
        }
    }
    signals
}

/// Whether the process has begun to end, so that signals do not reach it any more.
pub fn is_ending(pid: pid_t) -> bool {
    const PF_EXITING: u32 = 4;
    let flags = stat_field(pid, 9).and_then(|flags| flags.parse::<u32>().ok());
    flags.is_none_or(|flags| flags & PF_EXITING != 0) || pending_signals(pid) >> (libc::SIGKILL - 1) & 1 != 0
}

/// Waits until a process that has begun to end has ended, and with it its hold of files; `at_most` as long.
pub fn await_end(pid: pid_t, at_most: Duration) {
    if let Some(pidfd) = Some(pid).filter(|pid| *pid > 0 && is_ending(*pid)).and_then(|pid| open(pid).ok()) {
        let until = rustix::time::Timespec::try_from(at_most).ok();
        let _ = rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], until.as_ref());
    }
}

/// Whether the process is stopped by a signal.
pub fn is_stopped(pid: pid_t) -> bool {
    stat_field(pid, 3).as_deref() == Some("T")
}

/// Processor time that a thread has had, in nanoseconds, and how often it got a processor.
pub fn schedule_of(pid: pid_t, thread: pid_t) -> Option<(u64, u64)> {
    let schedstat = line_of(format!("/proc/{pid}/task/{thread}/schedstat"))?;
    let mut fields = schedstat.split_ascii_whitespace().map(|field| field.parse().ok());
    Some((fields.next()??, fields.nth(1)??))
}

/// The letter by which the kernel calls what a thread is about.
pub fn state_of(pid: pid_t, thread: pid_t) -> Option<char> {
    let stat = line_of(format!("/proc/{pid}/task/{thread}/stat"))?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

/// The process's parent.
pub fn parent_of(pid: pid_t) -> Option<pid_t> {
    stat_field(pid, 4)?.parse().ok()
}

/// Whether the process has memory: the first that one loses when it ends.
pub fn has_memory(pid: pid_t) -> bool {
    rustix::fs::readlink(format!("/proc/{pid}/exe"), []).is_ok()
}

/// What a running process was executed from.
pub struct Image {
    pub exe: PathBuf,
    pub argv: Vec<OsString>,
}

/// What the kernel says the process was executed from. The arguments are those that the process has now.
pub fn image_of(pid: pid_t) -> Option<Image> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let argv = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
    Some(Image { exe, argv: argv.map(|arg| OsString::from_vec(arg.to_vec())).collect() })
}

/// Whether the process has ended, and was not yet reaped.
pub fn is_dead(pid: pid_t) -> bool {
    stat_field(pid, 3).is_some_and(|state| state == "Z" || state == "X")
}

/// Whether the process exists and has not ended.
pub fn is_running(pid: pid_t) -> bool {
    stat_field(pid, 3).is_some_and(|state| state != "Z" && state != "X")
}
