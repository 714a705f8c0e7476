//! Reading a file that is to be a module.

use crate::error::Error;
use rustix::fs::{fstat, openat, FileType, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

/// No component is longer.
const LONGEST: u64 = 4 << 20;

/// Reads a file, which may be anybody's.
///
/// # Errors
/// It cannot be read, is no file or too long.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    contents(rustix::fs::CWD, path, OFlags::empty(), false)
}

/// Reads a file of a folder, itself and not what a link leads to, that nobody but us or root could have written.
pub fn read_own(folder: impl AsFd, path: &Path) -> Result<Vec<u8>, Error> {
    contents(folder, path, OFlags::NOFOLLOW, true)
}

fn contents(folder: impl AsFd, path: &Path, flags: OFlags, is_own: bool) -> Result<Vec<u8>, Error> {
    let failed = |e| Error::File(path.into(), e);
    let refused = |why| Err(Error::Refused(path.into(), why));
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(folder, path, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&fd).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return refused("it is no file");
    }
    if is_own && ![0, geteuid().as_raw()].contains(&stat.st_uid) {
        return refused("it belongs to another user");
    }
    if is_own && stat.st_mode & 0o022 != 0 {
        return refused("others may write to it");
    }
    let mut bytes = Vec::new();
    match File::from(fd).take(LONGEST + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > LONGEST => refused("it is longer than 4 MiB"),
        Ok(_) => Ok(bytes),
        Err(e) => Err(failed(rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO))),
    }
}
