//! Where the files of an archive lie, and their names.

use crate::seal::Seal;
use rustix::fs::{openat, renameat, statat, unlinkat, AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A folder that only we can enter, and what the names of all files begin with.
pub struct Place {
    dir: OwnedFd,
    prefix: String,
    seal: Option<Arc<Seal>>,
}

/// The two files of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Index,
    /// An index that is being written.
    NewIndex,
    Pages,
}

impl Part {
    fn suffix(self) -> &'static str {
        match self {
            Self::Index => "",
            Self::NewIndex => ".new",
            Self::Pages => ".pages",
        }
    }
}

impl Place {
    /// Beside a store with this name.
    pub fn beside(dir: OwnedFd, store: &str) -> Self {
        Self { dir, prefix: format!("{store}.gen."), seal: None }
    }

    /// The same, all of it encrypted.
    pub fn sealed(self, seal: Arc<Seal>) -> Self {
        Self { seal: Some(seal), ..self }
    }

    pub(crate) fn seal(&self) -> Option<&Seal> {
        self.seal.as_deref()
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    fn name(&self, number: u64, part: Part) -> String {
        format!("{}{number}{}", self.prefix, part.suffix())
    }

    /// The generation and part that a file's name tells.
    fn parse(&self, name: &str) -> Option<(u64, Part)> {
        let rest = name.strip_prefix(&self.prefix)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let part = [Part::Index, Part::NewIndex, Part::Pages].into_iter().find(|part| part.suffix() == &rest[digits..]);
        Some((rest[..digits].parse().ok()?, part?))
    }

    /// All files of the archive.
    pub(crate) fn files(&self) -> Result<Vec<(u64, Part)>, Errno> {
        let names =
            Dir::read_from(&self.dir)?.filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_string()));
        let mut files: Vec<_> = names.filter_map(|name| self.parse(&name)).collect();
        files.sort_by_key(|(number, _)| *number);
        Ok(files)
    }

    pub(crate) fn open(&self, number: u64, part: Part, write: bool) -> Result<File, Errno> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        openat(&self.dir, self.name(number, part), flags, Mode::empty()).map(File::from)
    }

    /// A new file, in place of one that may be there.
    pub(crate) fn create(&self, number: u64, part: Part) -> Result<File, Errno> {
        self.remove(number, part);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.dir, self.name(number, part), flags, Mode::from_raw_mode(0o600)).map(File::from)
    }

    /// The index counts from now on.
    pub(crate) fn promote(&self, number: u64) -> Result<(), Errno> {
        renameat(&self.dir, self.name(number, Part::NewIndex), &self.dir, self.name(number, Part::Index))
    }

    /// Removes a file; one that is not there is as good as removed.
    pub(crate) fn remove(&self, number: u64, part: Part) {
        let _ = unlinkat(&self.dir, self.name(number, part), AtFlags::empty());
    }

    /// Bytes that a file takes.
    pub(crate) fn taken(&self, number: u64, part: Part) -> u64 {
        let stat = statat(&self.dir, self.name(number, part), AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or(0, |stat| stat.st_blocks as u64 * 512)
    }

    /// Removes the whole archive: the indices first.
    pub fn clear(&self) {
        let mut files = self.files().unwrap_or_default();
        files.sort_by_key(|(_, part)| *part == Part::Pages);
        files.into_iter().for_each(|(number, part)| self.remove(number, part));
    }
}
