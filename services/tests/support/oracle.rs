//! What the kernel's own file system says to the same calls.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_services::fs::{APPEND, CREATE, EXCLUSIVE, FOLDER, TRUNCATE};

/// As a service says it: a result, or errno.
pub type Said<T> = Result<T, i32>;

/// An open file or folder, and the folder that names are meant below.
#[derive(Clone)]
pub struct Twin {
    file: Arc<File>,
    base: Option<Arc<File>>,
    pub folder: bool,
}

fn said<T>(result: std::io::Result<T>) -> Said<T> {
    result.map_err(|error| error.raw_os_error().expect("an error of the kernel"))
}

fn done(result: i32) -> Said<i32> {
    said(if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) })
}

fn text(name: &[u8]) -> CString {
    CString::new(name).expect("no zero")
}

impl Twin {
    pub fn root(path: &Path) -> Self {
        Self { file: Arc::new(File::open(path).expect("a folder")), base: None, folder: true }
    }

    pub fn open(&self, name: &[u8], flags: u32) -> Said<Self> {
        self.alive()?;
        let name = text(name);
        let (dir, folder) = (self.file.as_raw_fd(), flags & FOLDER != 0);
        let mut how = libc::O_CLOEXEC | if folder { libc::O_RDONLY | libc::O_DIRECTORY } else { libc::O_RDWR };
        if folder && flags & CREATE != 0 {
            // SAFETY: a live string and descriptor.
            let made = done(unsafe { libc::mkdirat(dir, name.as_ptr(), 0o700) });
            if made != Err(libc::EEXIST) || flags & EXCLUSIVE != 0 {
                made?;
            }
        } else if !folder {
            let map = [
                (CREATE, libc::O_CREAT),
                (EXCLUSIVE, libc::O_EXCL),
                (TRUNCATE, libc::O_TRUNC),
                (APPEND, libc::O_APPEND),
            ];
            how |= map.iter().filter(|(ours, _)| flags & ours != 0).map(|(_, kernels)| kernels).sum::<i32>();
        }
        // SAFETY: as above; the descriptor is new and ours.
        let file = unsafe { File::from_raw_fd(done(libc::openat(dir, name.as_ptr(), how, 0o600))?) };
        Ok(Self { file: Arc::new(file), base: Some(self.file.clone()), folder })
    }

    /// A file system in memory has nothing to say of what was removed.
    fn alive(&self) -> Said<()> {
        match said(self.file.metadata())?.nlink() {
            0 => Err(libc::ESTALE),
            _ => Ok(()),
        }
    }

    fn no_folder(&self) -> Said<&File> {
        self.alive()?;
        if self.folder {
            Err(libc::EISDIR)
        } else {
            Ok(&self.file)
        }
    }

    pub fn read(&self, most: usize) -> Said<Vec<u8>> {
        let mut bytes = vec![0; most];
        let got = said(self.no_folder()?.read(&mut bytes))?;
        bytes.truncate(got);
        Ok(bytes)
    }

    pub fn write(&self, bytes: &[u8]) -> Said<usize> {
        said(self.no_folder()?.write(bytes))
    }

    pub fn seek(&self, whence: u32, to: i64) -> Said<u64> {
        let file = self.no_folder()?;
        let to = match whence {
            0 => SeekFrom::Start(u64::try_from(to).map_err(|_| libc::EINVAL)?),
            1 => SeekFrom::Current(to),
            _ => SeekFrom::End(to),
        };
        said((&*file).seek(to))
    }

    pub fn truncate(&self, length: u64) -> Said<()> {
        said(self.no_folder()?.set_len(length))
    }

    pub fn size(&self) -> Said<(u64, bool)> {
        self.alive()?;
        Ok((if self.folder { 0 } else { said(self.file.metadata())?.size() }, self.folder))
    }

    fn path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).expect("open")
    }

    pub fn rename(&self, name: &[u8]) -> Said<()> {
        self.alive()?;
        let base = self.base.as_ref().expect("not the root");
        if said(base.metadata())?.nlink() == 0 {
            return Err(libc::ESTALE);
        }
        let (old, new) = (text(self.path().as_os_str().as_bytes()), text(name));
        // SAFETY: live strings and a live descriptor.
        done(unsafe { libc::renameat(libc::AT_FDCWD, old.as_ptr(), base.as_raw_fd(), new.as_ptr()) }).map(drop)
    }

    pub fn remove(&self) -> Said<()> {
        self.alive()?;
        said(if self.folder { std::fs::remove_dir(self.path()) } else { std::fs::remove_file(self.path()) })
    }

    /// Names in order, folders with a slash.
    pub fn list(&self) -> Said<Vec<Vec<u8>>> {
        self.alive()?;
        if !self.folder {
            return Err(libc::ENOTDIR);
        }
        let mut names: Vec<(Vec<u8>, bool)> = said(std::fs::read_dir(self.path()))?
            .map(|entry| entry.expect("a name"))
            .map(|entry| (entry.file_name().as_bytes().to_vec(), entry.file_type().expect("a type").is_dir()))
            .collect();
        names.sort();
        Ok(names.into_iter().map(|(name, folder)| [&name[..], if folder { b"/" } else { b"" }].concat()).collect())
    }
}
