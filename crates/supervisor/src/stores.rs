//! Where a program's store lies: in its folder, or in a folder of the person's choice that outlives the machine.

use crate::error::Error;
use crate::private_folder::{private_folder, Fault};
use crate::program_folder::ProgramFolder;
use crate::unreadable;
use outlast_archive::{Place, Seal};
use outlast_image::control::unreadable as why;
use outlast_image::layout::STORE_LEN;
use rustix::fs::{fstat, ftruncate, linkat, openat, renameat, statat, unlinkat, AtFlags, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder and the name of the store in it.
pub struct StorePlace {
    dir: OwnedFd,
    path: PathBuf,
    base: String,
    /// What older generations are encrypted with, once it is known.
    pub(crate) seal: Option<Arc<Seal>>,
}

impl StorePlace {
    /// Where a program's store is: `file` is its path, if it is not in the program's folder.
    pub fn of(folder: &ProgramFolder, file: Option<&Path>) -> Result<Self, Error> {
        match file.and_then(Path::parent) {
            Some(path) => Self::in_folder(path, folder.name()),
            None => Self::beside(folder),
        }
    }

    /// For a program that is protected from now on: in the folder of the person's, if one is given. What a program of this name has left
    /// there of older generations goes.
    pub fn begin(folder: &ProgramFolder, path: Option<&Path>, seal: Option<Arc<Seal>>) -> Result<Self, Error> {
        let mut place = match path {
            Some(path) => Self::in_folder(path, folder.name())?,
            None => Self::beside(folder)?,
        };
        place.seal = seal;
        place.archive()?.clear();
        Ok(place)
    }

    /// The program's own folder.
    pub fn beside(folder: &ProgramFolder) -> Result<Self, Error> {
        let dir = folder.dir().try_clone_to_owned().map_err(|_| Error::Kernel("copy a descriptor", Errno::MFILE))?;
        Ok(Self { dir, path: folder.path().into(), base: "store".into(), seal: None })
    }

    /// A folder of the person's, made with mode 0700 if it is not there; the file is `NAME.store`.
    pub fn in_folder(path: &Path, name: &str) -> Result<Self, Error> {
        match private_folder(CWD, path) {
            Ok(dir) => Ok(Self { dir, path: path.into(), base: format!("{name}.store"), seal: None }),
            Err(Fault::NotPrivate(what)) => Err(Error::BadStoreFolder(path.into(), what)),
            Err(Fault::Kernel(e)) => Err(Error::File(path.into(), e)),
        }
    }

    /// The store of a generation; number 0 is the one that counts.
    fn file(&self, number: u32) -> String {
        crate::generation::file_name(&self.base, number)
    }

    fn failed(&self, file: &str) -> impl FnOnce(Errno) -> Error {
        let path = self.path.join(file);
        move |e| Error::File(path, e)
    }

    /// Makes an empty store for a generation, in place of one that may be there.
    pub fn create(&self, number: u32) -> Result<OwnedFd, Error> {
        self.remove(number);
        let file = self.file(number);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.dir, &*file, flags, Mode::from_raw_mode(0o600)).map_err(self.failed(&file))?;
        ftruncate(&fd, STORE_LEN).map_err(self.failed(&file))?;
        Ok(fd)
    }

    /// Opens the store that counts. Its content is not trusted; that it is a file of ours, of the right size, is checked.
    pub fn open(&self) -> Result<OwnedFd, Error> {
        self.open_generation(0)
    }

    /// Opens the store of a generation.
    pub fn open_generation(&self, number: u32) -> Result<OwnedFd, Error> {
        let file = self.file(number);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let fd = openat(&self.dir, &*file, flags, Mode::empty()).map_err(self.failed(&file))?;
        let stat = fstat(&fd).map_err(self.failed(&file))?;
        let ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0;
        match FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && ours {
            true if stat.st_size as u64 == STORE_LEN => Ok(fd),
            true => Err(Error::Unreadable(self.path.join(file), unreadable::words(why::TOO_SHORT))),
            false => Err(self.failed(&file)(Errno::PERM)),
        }
    }

    /// The store that counts in another place is that of a generation here as well.
    pub fn link(&self, from: &Self, number: u32) -> Result<(), Error> {
        let file = self.file(number);
        self.remove(number);
        linkat(&from.dir, from.file(0), &self.dir, &file, AtFlags::empty()).map_err(self.failed(&file))
    }

    /// Makes the store of a generation the one that counts, if it is not yet.
    pub fn promote(&self, number: u32) -> Result<(), Error> {
        let (from, to) = (self.file(number), self.file(0));
        match renameat(&self.dir, &*from, &self.dir, &*to) {
            Err(Errno::NOENT) => Ok(()),
            result => result.map_err(self.failed(&to)),
        }
    }

    /// Removes the store of a generation; one that is not there is as good as removed.
    pub fn remove(&self, number: u32) {
        let _ = unlinkat(&self.dir, self.file(number), AtFlags::empty());
    }

    /// Where older generations are kept. For whoever reads or writes one: once [`crate::encryption::unlock`] was called.
    pub fn archive(&self) -> Result<Place, Error> {
        let dir = self.dir.try_clone().map_err(|_| Error::Kernel("copy a descriptor", Errno::MFILE))?;
        let place = Place::beside(dir, &self.base);
        Ok(match &self.seal {
            Some(seal) => place.sealed(seal.clone()),
            None => place,
        })
    }

    pub fn exists(&self) -> bool {
        statat(&self.dir, self.file(0), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Where the store that counts is.
    pub fn path(&self) -> PathBuf {
        self.path.join(self.file(0))
    }

    /// Where a copy of the program's description lies, for a resume after the machine was started again; none if the
    /// store does not outlive that either.
    pub fn description(&self) -> Option<(BorrowedFd<'_>, String)> {
        let name = self.base.strip_suffix(".store").filter(|name| !name.is_empty())?;
        Some((self.dir.as_fd(), format!("{name}.meta.json")))
    }
}
