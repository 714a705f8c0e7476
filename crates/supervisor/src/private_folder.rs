//! Folders in which nobody else can do anything.

use rustix::fs::{fstat, mkdirat, openat, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::{AsFd, OwnedFd};

/// How a folder is opened: itself, never what a link leads to.
pub const FOLDER: OFlags = OFlags::from_bits_retain(
    OFlags::DIRECTORY.bits() | OFlags::NOFOLLOW.bits() | OFlags::CLOEXEC.bits() | OFlags::RDONLY.bits(),
);
const PRIVATE_FOLDER: Mode = Mode::from_raw_mode(0o700);

/// Why a folder cannot be used.
pub enum Fault {
    NotPrivate(&'static str),
    Kernel(Errno),
}

impl From<Errno> for Fault {
    fn from(e: Errno) -> Self {
        Self::Kernel(e)
    }
}

/// Opens a folder in which only we can make or rename anything, making it with mode 0700 if it is not there.
pub fn private_folder(parent: impl AsFd, path: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Fault> {
    match mkdirat(&parent, path, PRIVATE_FOLDER) {
        Ok(()) | Err(Errno::EXIST) => (),
        Err(e) => return Err(e.into()),
    }
    let dir = match openat(&parent, path, FOLDER, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(Fault::NotPrivate("not a folder, or a link to one")),
        other => other?,
    };
    let stat = fstat(&dir)?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(Fault::NotPrivate("belongs to another user"));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(Fault::NotPrivate("others may write to it"));
    }
    Ok(dir)
}
