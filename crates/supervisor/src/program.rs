//! Which file a command names, and whether a process made from it may be traced.

use crate::error::Error;
use outlast_image::degradation::Degradation;
use rustix::fs::{accessat, fgetxattr, fstat, open, Access, AtFlags, FileType, Mode, OFlags, CWD};
use rustix::io::{pread, Errno};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Finds the file that a shell would execute for this command.
pub fn find(command: &OsStr) -> Result<PathBuf, Error> {
    let name = || command.to_string_lossy().into_owned();
    if command.as_bytes().contains(&b'/') {
        return match executable(Path::new(command)) {
            Ok(()) => Ok(PathBuf::from(command)),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(Error::NotFound(name())),
            Err(e) => Err(Error::NotExecutable(name(), e)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut refused = None;
    for folder in std::env::split_paths(&path).filter(|_| !command.is_empty()) {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let file = folder.join(command);
        match executable(&file) {
            Ok(()) => return Ok(file),
            // A folder that may not be searched holds nothing, as far as we can tell.
            Err(_) if rustix::fs::stat(&file).is_err() => (),
            Err(e) => refused = refused.or(Some(e)),
        }
    }
    Err(refused.map_or_else(|| Error::NotFound(name()), |e| Error::NotExecutable(name(), e)))
}

fn executable(file: &Path) -> Result<(), Errno> {
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)?;
    match FileType::from_raw_mode(rustix::fs::stat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::ACCESS),
    }
}

/// Why a process made from this file must run unprotected, if it must.
///
/// Tracing would take a privileged program's privileges away, and the kernel refuses it for unreadable ones.
pub fn obstacle(file: &Path) -> Option<Degradation> {
    let mut file = file.to_path_buf();
    // The kernel follows at most five interpreters.
    for _ in 0..5 {
        let fd = match open(&file, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK, Mode::empty())
        {
            Ok(fd) => fd,
            Err(Errno::ACCESS | Errno::PERM) => return Some(Degradation::UnreadableProgram),
            // Whatever it is, the kernel will say so when the file is executed.
            Err(_) => return None,
        };
        let mut head = [0; 256];
        let n = pread(&fd, &mut head, 0).unwrap_or(0);
        if let Some(interpreter) = interpreter(&head[..n]) {
            // Set-ID bits and capabilities of a script have no effect; its interpreter's have.
            file = interpreter;
            continue;
        }
        let stat = fstat(&fd).ok()?;
        let set_id = stat.st_mode & 0o4000 != 0 || stat.st_mode & 0o2010 == 0o2010;
        let mut capabilities = [0u8; 64];
        if set_id || fgetxattr(&fd, c"security.capability", &mut capabilities).is_ok() {
            return Some(Degradation::PrivilegedProgram);
        }
        let foreign = head.starts_with(b"\x7fELF") && (head[4] != 2 || head[18..20] != [0x3e, 0]);
        return foreign.then_some(Degradation::ForeignAbi);
    }
    None
}

/// The interpreter that a script's first line names.
pub(crate) fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|c| *c == b'\n').next()?;
    let mut words = line.split(|c| c.is_ascii_whitespace()).filter(|word| !word.is_empty());
    words.next().map(|word| PathBuf::from(OsStr::from_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_judged_by_its_interpreter() {
        assert_eq!(interpreter(b"#!/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#! \t/usr/bin/env python3"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn commands_are_looked_up_like_a_shell_does() {
        assert!(find(OsStr::new("sh")).unwrap().is_absolute());
        assert_eq!(find(OsStr::new("no-such-command-here")).unwrap_err().exit_status(), 127);
        assert_eq!(find(OsStr::new("/no/such/file")).unwrap_err().exit_status(), 127);
        assert_eq!(find(OsStr::new("/")).unwrap_err().exit_status(), 126);
        assert_eq!(find(OsStr::new("/etc/passwd")).unwrap_err().exit_status(), 126);
        assert_eq!(find(OsStr::new("")).unwrap_err().exit_status(), 127);
    }
}
