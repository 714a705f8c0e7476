//! The folder of one program: its session, store, description, log and lock.

use crate::error::Error;
use crate::private_folder::FOLDER;
use crate::session::Session;
use outlast_image::layout::{session, SESSION_LEN};
use rustix::fs::{
    fallocate, flock, fstat, ftruncate, mkdirat, openat, renameat, unlinkat, AtFlags, Dir, FallocateFlags,
    FlockOperation, Mode, OFlags,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);

/// Held by the supervisor of a program as long as it lives. It belongs to the open file, and so can be handed down.
pub struct Lock(OwnedFd);

impl Lock {
    /// The lock of an open file that was locked by whoever handed it down.
    pub fn held(file: OwnedFd) -> Self {
        Self(file)
    }

    /// The descriptor to be handed down.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The folder of one program.
pub struct ProgramFolder {
    path: PathBuf,
    name: String,
    dir: OwnedFd,
    /// Of another process of a program: path and name of the program's.
    of: Option<(PathBuf, String)>,
}

impl ProgramFolder {
    pub(crate) fn new(path: PathBuf, name: &str, dir: OwnedFd) -> Self {
        Self { path, name: name.into(), dir, of: None }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn at(&self, file: &str) -> impl FnOnce(Errno) -> Error + '_ {
        let path = self.path.join(file);
        move |e| Error::File(path, e)
    }

    /// Locks the program for a supervisor; `None` if one has it.
    pub fn lock(&self) -> Result<Option<Lock>, Error> {
        let file = self.open_file("lock", OFlags::CREATE | OFlags::RDWR)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(self.at("lock")(e)),
        }
    }

    pub fn has(&self, file: &str) -> bool {
        rustix::fs::statat(&self.dir, file, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file; one that is not there is as good as removed.
    pub fn remove(&self, file: &str) {
        // Nothing depends on it: what could not be removed is found, and refused or replaced, by whoever opens it next.
        let _ = unlinkat(&self.dir, file, AtFlags::empty());
    }

    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        renameat(&self.dir, from, &self.dir, to).map_err(self.at(to))
    }

    /// Takes a file out of another folder.
    pub fn take(&self, from: &Self, file: &str, to: &str) -> Result<(), Error> {
        renameat(&from.dir, file, &self.dir, to).map_err(self.at(to))
    }

    /// Opens a file of the folder, never through a link, close-on-exec, mode 0600 if it is made.
    pub fn open_file(&self, file: &str, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        openat(&self.dir, file, flags, PRIVATE_FILE).map_err(self.at(file))
    }

    /// Makes an empty session.
    pub fn create_session(&self, file: &str) -> Result<Session, Error> {
        self.remove(file);
        let fd = self.open_file(file, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR)?;
        // What is written without asking must have room, also when the file system is full one day: a write there would be
        // a fault in a handler of faults. The kernel itself gives a ring's place room, or refuses the ring. A session that
        // was made half is too short.
        for (from, len) in [(0, session::EVENTS + session::EVENTS_LEN), (session::BOUNCE, session::BOUNCE_LEN)] {
            fallocate(&fd, FallocateFlags::empty(), from, len).map_err(self.at(file))?;
        }
        ftruncate(&fd, SESSION_LEN).map_err(self.at(file))?;
        let session = Session::map(fd).map_err(self.at(file))?;
        session.format();
        Ok(session)
    }

    /// Opens the program's session.
    pub fn open_session(&self) -> Result<Session, Error> {
        self.open_session_file("session")
    }

    /// Opens a session; one that was not made whole is an error.
    pub fn open_session_file(&self, file: &str) -> Result<Session, Error> {
        let fd = self.open_file(file, OFlags::RDWR)?;
        let stat = fstat(&fd).map_err(self.at(file))?;
        if (stat.st_size as u64) < SESSION_LEN {
            return Err(self.at(file)(Errno::NODATA));
        }
        let session = Session::map(fd).map_err(self.at(file))?;
        match session.is_formatted() {
            true => Ok(session),
            false => Err(self.at(file)(Errno::BADMSG)),
        }
    }

    /// Removes the folder with everything in it.
    pub fn clear(&self) -> Result<(), Error> {
        let entries = Dir::read_from(&self.dir).map_err(|e| Error::File(self.path.clone(), e))?;
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            match self.folder(&name) {
                Ok(inner) if name != "." && name != ".." => inner.clear()?,
                _ => self.remove(&name),
            }
        }
        rustix::fs::rmdir(&self.path).map_err(|e| Error::File(self.path.clone(), e))
    }

    /// A folder in this one, for another process of the program.
    pub fn folder(&self, name: &str) -> Result<Self, Error> {
        let dir = openat(&self.dir, name, FOLDER, Mode::empty()).map_err(self.at(name))?;
        Ok(Self { of: Some((self.path.clone(), self.name.clone())), ..Self::new(self.path.join(name), name, dir) })
    }

    /// Path and name of the folder of the whole program.
    pub fn whole(&self) -> (&Path, &str) {
        self.of.as_ref().map_or((&self.path, &self.name), |(path, name)| (path, name))
    }

    /// Names of the folders in this one.
    pub fn folders(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.dir) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(String::from));
        names.filter(|name| !name.starts_with('.') && self.folder(name).is_ok()).collect()
    }

    /// Makes one.
    pub fn create_folder(&self, name: &str) -> Result<Self, Error> {
        mkdirat(&self.dir, name, Mode::from_raw_mode(0o700)).map_err(self.at(name))?;
        self.folder(name)
    }

    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}
