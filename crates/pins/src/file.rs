//! The pin `file`: what the kernel shows of the program's descriptors.

use crate::desk::Shared;
use libc::pid_t;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_image::layout::{ENGINE_FDS, HIDING_FDS};
use outlast_interfaces::file::{self, Counted, Descriptor, Kind, List, COUNTED_BY_KIND, MOST, NAME};
use outlast_interfaces::watch::Look;
use outlast_supervisor::decision::Process;
use outlast_supervisor::processes;
use std::fs;

pub struct File(pub Shared);

impl Pin for File {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        if operation == file::WATCH {
            return self.0.borrow_mut().watch(NAME, &argument.read()?).map(|()| Payload::NONE);
        }
        let List { program, from, most } = argument.read()?;
        let process = self.0.borrow().process_of(NAME, &program)?;
        let numbers = numbers(&process).into_iter().filter(|number| *number >= from);
        let described = numbers.filter_map(|number| describe(process.pid, number));
        Payload::of(&described.take(most.min(MOST) as usize).collect::<Vec<_>>())
    }

    fn wanted(&mut self, _: &'static str, is_wanted: bool) {
        if !is_wanted {
            self.0.borrow_mut().sights.end(NAME);
        }
    }
}

/// One look at the table.
pub fn count(process: &Process, look: Look) -> Counted {
    let numbers = numbers(process);
    let open = numbers.len() as u32;
    let mut counted = Counted {
        look,
        open,
        files: 0,
        pipes: 0,
        sockets: 0,
        others: 0,
        limit: processes::descriptor_limit(process.pid),
    };
    for path in numbers.into_iter().take(COUNTED_BY_KIND).filter_map(|number| path(process.pid, number)) {
        *match kind(&path) {
            Kind::File => &mut counted.files,
            Kind::Pipe => &mut counted.pipes,
            Kind::Socket => &mut counted.sockets,
            Kind::Other => &mut counted.others,
        } += 1;
    }
    counted
}

/// The program's own descriptors, the lowest first. The engine may be hiding some just above its own, for an instant.
pub fn numbers(process: &Process) -> Vec<i32> {
    let engines = process.engine_fds..process.engine_fds.saturating_add(ENGINE_FDS + HIDING_FDS);
    let mut numbers = processes::descriptors(process.pid);
    numbers.retain(|number| process.engine_fds <= 0 || !engines.contains(number));
    numbers.sort_unstable();
    numbers
}

/// None: it is closed by now.
pub fn path(pid: pid_t, number: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?.to_string_lossy().into_owned())
}

fn describe(pid: pid_t, number: i32) -> Option<Descriptor> {
    let path = path(pid, number)?;
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    let (flags, offset) = flags_and_offset(&info)?;
    Some(Descriptor { number, kind: kind(&path), path, flags, offset })
}

fn kind(path: &str) -> Kind {
    match path {
        _ if path.starts_with('/') => Kind::File,
        _ if path.starts_with("pipe:") => Kind::Pipe,
        _ if path.starts_with("socket:") => Kind::Socket,
        _ => Kind::Other,
    }
}

/// From the first lines of fdinfo: `pos:` in decimal, `flags:` in octal.
fn flags_and_offset(info: &str) -> Option<(u32, u64)> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((u32::from_str_radix(field("flags:")?, 8).ok()?, field("pos:")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_of_a_descriptor_is_read_and_nothing_else() {
        assert_eq!(flags_and_offset("pos:\t4711\nflags:\t02100002\nmnt_id:\t15\nino:\t7\n"), Some((0o2100002, 4711)));
        let hostile = [
            "",
            "pos:\n",
            "pos:\t-1\nflags:\t0\n",
            "flags:\t9\npos:\t0",
            "pos:\t99999999999999999999999\nflags:\t0",
            "\u{0}",
        ];
        for info in hostile {
            assert_eq!(flags_and_offset(info), None, "{info:?}");
        }
    }

    #[test]
    fn kinds_are_told_by_what_a_path_begins_with() {
        let kinds = ["/pipe:[1]", "pipe:[1]", "socket:[2]", "anon_inode:[eventpoll]", "", "net:[4026531840]"].map(kind);
        assert_eq!(kinds, [Kind::File, Kind::Pipe, Kind::Socket, Kind::Other, Kind::Other, Kind::Other]);
    }
}
