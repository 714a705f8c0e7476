//! The mappings of a process, and what each is to the program.

use crate::campaign::Area;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<u64>,
    pub executable: bool,
    pub writable: bool,
    pub shared: bool,
    /// Where in the file it begins.
    pub offset: u64,
    pub path: String,
}

/// Whether an address is in the engine's part of the address space.
pub fn is_engine(address: u64) -> bool {
    (ENGINE_BASE..ENGINE_END).contains(&address)
}

impl Mapping {
    /// None: not the program's, or not to be hit.
    pub fn area(&self) -> Option<Area> {
        if is_engine(self.range.start) || self.shared || self.path == "[vdso]" || self.path.starts_with("[vvar") {
            return None;
        }
        match (self.executable, self.writable, self.path.as_str()) {
            (true, false, path) if !path.starts_with('[') => Some(Area::Text),
            (false, true, "[stack]") => Some(Area::Stack),
            (false, true, "[heap]" | "") => Some(Area::Heap),
            (false, true, path) if !path.starts_with('[') => Some(Area::Data),
            _ => None,
        }
    }
}

/// All mappings of a process, in the order of their addresses; empty once it is gone.
pub fn of(pid: i32) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let flags = words.next()?.as_bytes();
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2).unwrap_or_default().trim_start();
    Some(Mapping {
        range: u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?,
        executable: flags.get(2) == Some(&b'x'),
        writable: flags.get(1) == Some(&b'w'),
        shared: flags.get(3) == Some(&b's'),
        offset,
        path: path.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whole() {
        let mapping = parse("7f00-7fff r-xp 00001000 fe:00 123                        /usr/lib/a b.so").unwrap();
        assert_eq!((mapping.range, mapping.offset, mapping.path.as_str()), (0x7f00..0x7fff, 0x1000, "/usr/lib/a b.so"));
        assert!(mapping.executable && !mapping.writable);
        let line = "555000-556000 rw-p 00000000 00:00 0 ";
        assert_eq!(parse(line).unwrap().area(), Some(Area::Heap));
    }

    #[test]
    fn this_program_has_a_stack_and_text() {
        let areas: Vec<_> = of(std::process::id() as i32).iter().filter_map(Mapping::area).collect();
        assert!(areas.contains(&Area::Stack) && areas.contains(&Area::Text));
    }
}
