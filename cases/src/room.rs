//! Where a test's program lives: a directory of its own on memory-backed storage.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{chown, fchown, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::failure::{Outcome, Tried};
use crate::setting::{User, ORDINARY_ID};

/// A directory for one test, gone with the value. On `/dev/shm` where there is one: a test wants no disk.
pub fn site() -> Outcome<TempDir> {
    let shm = Path::new("/dev/shm");
    let base = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("outlast-cases.").tempdir_in(&base).tried_on("make a directory in", &base)
}

/// A directory for one test on a disk, gone with the value: temporary files that outlive a boot lie on one.
pub fn disk() -> Outcome<TempDir> {
    let base = Path::new("/var/tmp");
    tempfile::Builder::new().prefix("outlast-cases.").tempdir_in(base).tried_on("make a directory in", base)
}

/// `work` (the program's directory) and `state` (outlast's) in a directory of the test's own, and `store` in one on a disk.
#[derive(Clone, Debug)]
pub struct Room {
    site: PathBuf,
    disk: PathBuf,
    user: User,
}

impl Room {
    /// In `site` and `disk`, which belong to one test and are removed by who made them.
    pub fn new(site: &Path, disk: &Path, user: User) -> Outcome<Room> {
        let room = Room { site: site.to_path_buf(), disk: disk.to_path_buf(), user };
        room.open_to_user(site)?;
        room.open_to_user(disk)?;
        room.clear()?;
        Ok(room)
    }

    /// Empties all directories, so that the next run sees what the first one saw, under the same names.
    pub fn clear(&self) -> Outcome<()> {
        for dir in [self.work(), self.state(), self.store()] {
            if dir.exists() {
                fs::remove_dir_all(&dir).tried_on("empty", &dir)?;
            }
            fs::create_dir(&dir).tried_on("make", &dir)?;
            self.open_to_user(&dir)?;
        }
        Ok(())
    }

    pub fn work(&self) -> PathBuf {
        self.site.join("work")
    }

    /// `OUTLAST_STATE_DIR`.
    pub fn state(&self) -> PathBuf {
        self.site.join("state")
    }

    /// What `--store` names, where a test has the store on a disk.
    pub fn store(&self) -> PathBuf {
        self.disk.join("store")
    }

    /// What is in [`Room::store`] but should not be once a program has ended: everything but its description.
    pub fn left_on_disk(&self) -> Outcome<Option<String>> {
        let dir = self.store();
        for entry in fs::read_dir(&dir).tried_on("list", &dir)? {
            let name = entry.tried_on("list", &dir)?.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".meta.json") {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// What commands given beside the program complain about.
    pub fn complaints(&self) -> PathBuf {
        self.site.join("complaints")
    }

    /// Session file of the program called `name`.
    pub fn session(&self, name: &str) -> PathBuf {
        self.state().join(name).join("session")
    }

    /// Writes a file for the program to find, and makes the folders above it.
    pub fn put(&self, name: &str, contents: &[u8]) -> Outcome<()> {
        let path = self.work().join(name);
        let above: Vec<&Path> = Path::new(name).ancestors().skip(1).filter(|folder| *folder != Path::new("")).collect();
        for folder in above.into_iter().rev().map(|folder| self.work().join(folder)).filter(|folder| !folder.exists()) {
            fs::create_dir(&folder).tried_on("make", &folder)?;
            self.open_to_user(&folder)?;
        }
        fs::write(&path, contents).tried_on("write", &path)?;
        self.open_to_user(&path)
    }

    /// A terminal belongs to whoever is logged in there; programs look.
    pub fn hand_over(&self, terminal: impl AsFd) -> Outcome<()> {
        if self.is_handed_over() {
            fchown(terminal, Some(ORDINARY_ID), Some(ORDINARY_ID)).tried("hand over the terminal")?;
        }
        Ok(())
    }

    fn is_handed_over(&self) -> bool {
        self.user == User::Ordinary && rustix::process::geteuid().is_root()
    }

    fn open_to_user(&self, path: &Path) -> Outcome<()> {
        if self.is_handed_over() {
            chown(path, Some(ORDINARY_ID), Some(ORDINARY_ID)).tried_on("hand over", path)?;
        }
        // A state directory that others could enter is refused by outlast.
        let mode = if path == self.state() || path == self.store() {
            0o700
        } else if path.is_dir() {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).tried_on("set the mode of", path)
    }
}
