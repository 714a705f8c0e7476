//! Which files a process executes, from /proc/PID/maps.

use std::ops::Range;
use std::path::PathBuf;

/// A file that has code mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// As the process sees it.
    pub path: String,
    /// Where the kernel lets us open it, whatever root the process has.
    pub open: PathBuf,
    /// Device and inode, as the kernel writes them: whether what can be opened is still the same file.
    pub inode: u64,
    /// Addresses of the code.
    pub code: Range<u64>,
    /// Offset of the code in the file.
    pub offset: u64,
}

/// The files that a process executes.
pub fn executed(pid: i32) -> Vec<Executed> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| executed_of(pid, line)).collect()
}

fn executed_of(pid: i32, line: &str) -> Option<Executed> {
    let mut fields = line.splitn(6, ' ');
    let (range, rights, offset, _device, inode) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let path = fields.next()?.trim_start();
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let is_file = rights.as_bytes().get(2) == Some(&b'x') && path.starts_with('/');
    is_file.then_some(Executed {
        path: path.into(),
        open: PathBuf::from(format!("/proc/{pid}/root{path}")),
        inode: inode.parse().ok()?,
        code: hex(start)?..hex(end)?,
        offset: hex(offset)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_told_from_other_mappings() {
        let line = "7f10a000-7f10c000 r-xp 00002000 fe:00 1234                       /usr/lib/a name.so";
        let executed = executed_of(7, line).unwrap();
        assert_eq!((executed.path.as_str(), executed.inode), ("/usr/lib/a name.so", 1234));
        assert_eq!((executed.code, executed.offset), (0x7f10a000..0x7f10c000, 0x2000));
        assert_eq!(executed.open, PathBuf::from("/proc/7/root/usr/lib/a name.so"));
        for other in [
            "7f10a000-7f10c000 r--p 00002000 fe:00 1234                       /usr/lib/a.so",
            "7f10a000-7f10c000 r-xp 00000000 00:00 0                          [vdso]",
            "7f10a000-7f10c000 rwxp 00000000 00:00 0 ",
            "nonsense",
            "",
        ] {
            assert_eq!(executed_of(7, other), None, "{other}");
        }
    }
}
