//! The state folder of a user: one folder a program.

use crate::error::Error;
use crate::private_folder::{private_folder, Fault, FOLDER};
use crate::program_folder::{Lock, ProgramFolder};
use crate::program_name::{is_name, name_of};
use crate::{log, systems, upgrade, wishing};
use rustix::fs::{fstat, fstatfs, open, openat, Dir, Mode, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The variable that names another state folder.
pub const VARIABLE: &str = "OUTLAST_STATE_DIR";

/// The folder that holds one folder for each of a user's programs.
pub struct StateFolder {
    path: PathBuf,
    dir: OwnedFd,
}

impl StateFolder {
    /// Opens the user's state folder, making it if it is not there.
    ///
    /// `OUTLAST_STATE_DIR` if set; else /run/outlast (root) or $XDG_RUNTIME_DIR/outlast, if that is on a tmpfs and the
    /// user's; else /dev/shm/outlast-UID. It must be a folder of the user's on a tmpfs (io_uring refuses memory of other
    /// file systems), with mode 0700; one that the person chose may be read, but not written, by others.
    pub fn open() -> Result<Self, Error> {
        if let Some(path) = std::env::var_os(VARIABLE) {
            return Self::open_at(PathBuf::from(path));
        }
        let path = match runtime_folder() {
            Some(path) => path.join("outlast"),
            None => PathBuf::from(format!("/dev/shm/outlast-{}", geteuid().as_raw())),
        };
        let state = Self::open_at(path)?;
        match fstat(&state.dir) {
            Ok(stat) if stat.st_mode & 0o777 == 0o700 => Ok(state),
            Ok(_) => Err(Error::BadStateFolder(state.path, "others may enter it")),
            Err(e) => Err(Error::StateFolder(state.path, e)),
        }
    }

    /// Opens this folder, making it if it is not there.
    pub fn open_at(path: PathBuf) -> Result<Self, Error> {
        match private_folder(CWD, &path) {
            Err(Fault::NotPrivate(what)) => Err(Error::BadStateFolder(path, what)),
            Err(Fault::Kernel(e)) => Err(Error::StateFolder(path, e)),
            Ok(dir) if !is_tmpfs(dir.as_fd()) => Err(Error::BadStateFolder(path, "not on a tmpfs")),
            Ok(dir) => Ok(Self { path, dir }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Names of all programs that have a folder, sorted.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let entries = Dir::read_from(&self.dir).map_err(|e| Error::File(self.path.clone(), e))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(String::from));
        let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Opens the folder of a program that has one.
    pub fn program(&self, name: &str) -> Result<ProgramFolder, Error> {
        if !is_name(name) {
            return Err(Error::BadName(name.into()));
        }
        match openat(&self.dir, name, FOLDER, Mode::empty()) {
            Ok(dir) => Ok(ProgramFolder::new(self.path.join(name), name, dir)),
            Err(Errno::NOENT) => Err(Error::NoSuchProgram(name.into())),
            Err(e) => Err(Error::File(self.path.join(name), e)),
        }
    }

    /// Makes and locks a folder for a new program: with this name, or with one that is free and made from `program`.
    pub fn create(&self, name: Option<&str>, program: &Path) -> Result<(ProgramFolder, Lock), Error> {
        if let Some(name) = name {
            if !is_name(name) {
                return Err(Error::BadName(name.into()));
            }
            return self.claim(name)?.ok_or_else(|| Error::NameTaken(name.into()));
        }
        let base = name_of(program);
        for n in 1.. {
            let name = if n == 1 { base.clone() } else { format!("{base}-{n}") };
            if let Some(claimed) = self.claim(&name)? {
                return Ok(claimed);
            }
        }
        unreachable!("a free number is found before they run out")
    }

    /// Takes a name if nothing lives, or waits to be resumed, under it.
    fn claim(&self, name: &str) -> Result<Option<(ProgramFolder, Lock)>, Error> {
        let path = self.path.join(name);
        match private_folder(&self.dir, name) {
            Err(Fault::NotPrivate(what)) => Err(Error::BadStateFolder(path, what)),
            Err(Fault::Kernel(e)) => Err(Error::File(path, e)),
            Ok(dir) => {
                let folder = ProgramFolder::new(path, name, dir);
                let Some(lock) = folder.lock()? else { return Ok(None) };
                if folder.has("session") {
                    return Ok(None);
                }
                // Of the program that had the name before, as what somebody wished of that.
                for file in [log::FILE, upgrade::WISH, systems::FILE].into_iter().chain(wishing::FILES) {
                    folder.remove(file);
                }
                Ok(Some((folder, lock)))
            }
        }
    }
}

fn is_tmpfs(dir: BorrowedFd<'_>) -> bool {
    fstatfs(dir).is_ok_and(|stat| stat.f_type as u64 == TMPFS_MAGIC)
}

/// /run or $XDG_RUNTIME_DIR, if it is a tmpfs and ours.
fn runtime_folder() -> Option<PathBuf> {
    let path = match geteuid().is_root() {
        true => PathBuf::from("/run"),
        false => PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?),
    };
    let dir = open(&path, FOLDER, Mode::empty()).ok()?;
    let ours = fstat(&dir).ok()?.st_uid == geteuid().as_raw();
    (ours && is_tmpfs(dir.as_fd())).then_some(path)
}
