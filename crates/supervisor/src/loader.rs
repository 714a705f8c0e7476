//! What the kernel needs besides a program's file to execute it: the interpreter of a script, and the loader that an ELF file names.

use crate::program;
use rustix::fs::{open, Mode, OFlags};
use rustix::io::pread;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PT_INTERP: u32 = 3;
/// The kernel takes no longer path.
const LONGEST: usize = 4096;

/// The first of them that does not exist: execve says ENOENT then, as if the program itself were not there.
pub fn missing(file: &Path) -> Option<PathBuf> {
    let mut file = file.to_path_buf();
    // The kernel follows at most five interpreters.
    for _ in 0..5 {
        let fd =
            open(&file, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK, Mode::empty()).ok()?;
        let mut head = [0; 256];
        let n = pread(&fd, &mut head, 0).unwrap_or(0);
        let script = program::interpreter(&head[..n]);
        let is_script = script.is_some();
        let needed = script.or_else(|| loader(&fd, &head[..n]))?;
        if !needed.exists() {
            return Some(needed);
        }
        if !is_script {
            return None;
        }
        file = needed;
    }
    None
}

/// What PT_INTERP of a 64-bit ELF file says.
fn loader(fd: &OwnedFd, head: &[u8]) -> Option<PathBuf> {
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |bytes: &[u8], at: usize, len: usize| {
        let bytes = bytes.get(at..at + len)?;
        Some(bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (table, size, count) = (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?);
    for n in 0..count {
        let mut header = [0; 56];
        if size != 56 || pread(fd, &mut header, table.checked_add(n * size)?).ok()? != header.len() {
            return None;
        }
        if number(&header, 0, 4)? == u64::from(PT_INTERP) {
            let mut path = vec![0; (number(&header, 32, 8)? as usize).min(LONGEST)];
            let n = pread(fd, &mut path[..], number(&header, 8, 8)?).ok()?;
            let path = path[..n].split(|byte| *byte == 0).next()?;
            return Some(PathBuf::from(OsStr::from_bytes(path)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_lacks_nothing() {
        assert_eq!(missing(Path::new("/bin/sh")), None);
        assert_eq!(missing(Path::new("/etc/passwd")), None);
        assert_eq!(missing(Path::new("/no/such/file")), None);
    }
}
