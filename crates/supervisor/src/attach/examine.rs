//! What can be seen of a process from outside that decides whether it can be attached to. Looked at twice: before it is stopped, so
//! that a refusal costs it nothing, and while it is, so that nothing has changed since.

use super::refusal::Refusal;
use super::shared;
use crate::processes;
use libc::pid_t;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, THREADS};
use rustix::fs::{open, readlink, statfs, Mode, OFlags};
use rustix::io::read;
use std::collections::HashMap;
use std::path::Path;

const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// Is there anything that forbids to attach to the process?
pub fn examine(pid: pid_t) -> Result<(), Refusal> {
    let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let status = text("status").map_err(|_| Refusal::Gone)?;
    namespaces_allow(pid)?;
    status_allows(pid, &status)?;
    threads_allow(pid)?;
    image_allows(pid)?;
    let lacks = |_| Refusal::Foreign;
    maps_allow(pid, &text("maps").map_err(lacks)?)?;
    marks_allow(&text("smaps").map_err(lacks)?)?;
    if !text("timers").map_err(lacks)?.is_empty() {
        return Err(Refusal::Has("timers of its own (timer_create)"));
    }
    descriptors_allow(pid)
}

fn status_allows(pid: pid_t, status: &str) -> Result<(), Refusal> {
    let own = std::fs::read_to_string("/proc/self/status").map_err(|_| Refusal::ProcHidden)?;
    let (theirs, ours) = (fields(status), fields(&own));
    let number = |name| theirs.get(name).and_then(|value| value.parse::<usize>().ok()).unwrap_or(0);
    match theirs.get("State").and_then(|state| state.chars().next()) {
        Some('Z' | 'X') => return Err(Refusal::Gone),
        Some('T') => return Err(Refusal::StoppedByNow(pid)),
        _ => (),
    }
    let filters = ["Seccomp", "Seccomp_filters"];
    match () {
        _ if number("TracerPid") != 0 && number("TracerPid") != std::process::id() as usize => {
            Err(Refusal::Traced(number("TracerPid") as pid_t))
        }
        // Those of a container are the same for all in it.
        _ if filters.iter().any(|field| theirs.get(field) != ours.get(field)) => Err(Refusal::Filters),
        _ if theirs.get("x86_Thread_features").is_some_and(|has| has.contains("shstk")) => Err(Refusal::ShadowStack),
        _ if theirs.get("VmLck").is_some_and(|locked| !locked.starts_with("0 ")) => {
            Err(Refusal::Has("memory that it has locked (mlock)"))
        }
        _ => Ok(()),
    }
}

/// What its threads have of their own, and not in common.
fn threads_allow(pid: pid_t) -> Result<(), Refusal> {
    let threads = processes::threads_of(pid);
    if threads.len() > THREADS {
        return Err(Refusal::Threads(threads.len()));
    }
    for tid in threads.into_iter().filter(|tid| *tid != pid) {
        // One that has ended meanwhile is none.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")) else { continue };
        status_allows(tid, &status)?;
        if !tells_addresses() {
            return Err(Refusal::Has(
                "several threads, of which this kernel does not tell enough (CHECKPOINT_RESTORE)",
            ));
        }
        // One that ends has given them up first.
        if shared::have_own_files(pid, tid) && !processes::is_ending(tid) {
            return Err(Refusal::Has("threads that do not share their files"));
        }
    }
    Ok(())
}

/// Does the kernel tell which word it clears at a thread's end?
fn tells_addresses() -> bool {
    const PR_GET_TID_ADDRESS: libc::c_int = 40;
    let mut address = 0u64;
    // SAFETY: the kernel writes 8 bytes.
    unsafe { libc::prctl(PR_GET_TID_ADDRESS, &raw mut address) == 0 }
}

fn fields(status: &str) -> HashMap<&str, &str> {
    status.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect()
}

/// Where it is: in a container much else is different, too, which need not be told. What cannot be looked at is told of by what follows.
fn namespaces_allow(pid: pid_t) -> Result<(), Refusal> {
    let link = |process: &str, name: &str| readlink(format!("/proc/{process}/ns/{name}"), []);
    let differs = |name: &&str| match (link(&pid.to_string(), name), link("self", name)) {
        (Ok(theirs), Ok(ours)) => theirs != ours,
        _ => false,
    };
    match ["pid", "pid_for_children", "user"].iter().any(differs) {
        true => Err(Refusal::Namespace),
        false => Ok(()),
    }
}

/// What it was executed from, and what it sees.
fn image_allows(pid: pid_t) -> Result<(), Refusal> {
    let mut head = [0; 5];
    let file = open(format!("/proc/{pid}/exe"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let file = file.map_err(|_| Refusal::Foreign)?;
    if !matches!(read(&file, &mut head), Ok(5)) || head != *b"\x7fELF\x02" {
        return Err(Refusal::ForeignAbi);
    }
    let seen = statfs(format!("/proc/{pid}/root/proc/{pid}/maps")).is_ok_and(|fs| fs.f_type as u64 == PROC_SUPER_MAGIC);
    if !seen {
        return Err(Refusal::ProcHidden);
    }
    match processes::parent_of(pid) {
        Some(parent) if shared::have_one_memory(pid, parent) => Err(Refusal::SharedMemory),
        _ => Ok(()),
    }
}

/// Is the engine in a process, or was it? So it is in programs that are protected or were left alone, in their children and their anchors.
pub fn has_engine(pid: pid_t) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(range_of).any(is_engines)
}

/// Where a mapping lies.
fn range_of(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(start)?, number(end)?))
}

fn is_engines((start, end): (u64, u64)) -> bool {
    start < ENGINE_END && ENGINE_BASE < end
}

/// What it has mapped.
fn maps_allow(pid: pid_t, maps: &str) -> Result<(), Refusal> {
    for line in maps.lines() {
        if range_of(line).is_some_and(is_engines) {
            return Err(Refusal::Protected);
        }
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_shared = words.next().is_some_and(|rights| rights.ends_with('s'));
        let file = [words.nth(1), words.next()];
        let Some(path) = line.find('/').map(|at| &line[at..]) else { continue };
        let Some(name) = path.strip_suffix(" (deleted)") else { continue };
        match name {
            "/[aio]" => return Err(Refusal::Has("a context of asynchronous input and output (io_setup)")),
            _ if name.starts_with("/SYSV") => return Err(Refusal::Has("shared memory of System V")),
            "/dev/zero" if is_shared => {
                if shared::is_mapped_elsewhere(pid, file) {
                    return Err(Refusal::Has("memory that it shares with other processes"));
                }
            }
            _ => return Err(Refusal::Removed(name.into())),
        }
    }
    Ok(())
}

/// How the kernel has marked its mappings.
fn marks_allow(smaps: &str) -> Result<(), Refusal> {
    let mut is_kernels = false;
    for line in smaps.lines() {
        let Some(marks) = line.strip_prefix("VmFlags:") else {
            if line.as_bytes().first().is_some_and(u8::is_ascii_hexdigit) && line.contains('-') {
                is_kernels = line.contains("[v");
            }
            continue;
        };
        let has = |wanted: &[&str]| marks.split_ascii_whitespace().any(|mark| wanted.contains(&mark));
        match () {
            _ if is_kernels => (),
            _ if has(&["um", "uw", "ui"]) => {
                return Err(Refusal::Has("memory whose faults it, or somebody else, serves"))
            }
            _ if has(&["io", "pf"]) => return Err(Refusal::Has("the memory of a device mapped")),
            _ if has(&["ss"]) => return Err(Refusal::ShadowStack),
            _ if has(&["gu"]) => return Err(Refusal::Has("guards in its memory (MADV_GUARD_INSTALL)")),
            _ => (),
        }
    }
    Ok(())
}

/// What it has open.
fn descriptors_allow(pid: pid_t) -> Result<(), Refusal> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(Path::new(&folder)).map_err(|_| Refusal::Foreign)?;
    for entry in entries.flatten() {
        let Ok(name) = readlink(entry.path(), []) else { continue };
        match name.to_bytes() {
            b"anon_inode:[io_uring]" => return Err(Refusal::Has("an io_uring")),
            b"anon_inode:[userfaultfd]" => return Err(Refusal::Has("a userfaultfd")),
            b"anon_inode:[pidfd]" | b"pidfd:" => {
                let number = entry.file_name();
                let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy()));
                if info.is_ok_and(|info| fields(&info).get("Pid") == Some(&&*pid.to_string())) {
                    return Err(Refusal::Has("a pidfd of itself"));
                }
            }
            _ => (),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_preserved_is_seen_in_the_map() {
        let line = |path: &str| format!("7f0000000000-7f0000001000 rw-s 00000000 00:01 1033    {path}\n");
        assert!(matches!(maps_allow(1, &line("/[aio] (deleted)")), Err(Refusal::Has(_))));
        assert!(matches!(maps_allow(1, &line("/SYSV00000000 (deleted)")), Err(Refusal::Has(_))));
        assert!(matches!(maps_allow(1, &line("/usr/lib/libx.so (deleted)")), Err(Refusal::Removed(_))));
        assert!(maps_allow(1, &line("/usr/lib/libx.so")).is_ok());
        let engine = format!("{ENGINE_BASE:x}-{:x} r-xp 00000000 00:01 5 /x\n", ENGINE_BASE + 4096);
        assert!(matches!(maps_allow(1, &engine), Err(Refusal::Protected)));
    }

    #[test]
    fn marks_of_the_kernels_own_mappings_are_none_of_the_programs() {
        let smaps = |name: &str, marks: &str| format!("7f00-7f01 r--p 00000000 00:00 0  {name}\nVmFlags: rd {marks}\n");
        assert!(marks_allow(&smaps("[vvar]", "io pf")).is_ok());
        assert!(marks_allow(&smaps("/dev/mem", "io pf")).is_err());
        assert!(marks_allow(&smaps("", "um")).is_err());
        assert!(marks_allow(&smaps("", "mr mw ac")).is_ok());
    }
}
