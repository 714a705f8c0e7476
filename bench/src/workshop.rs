//! Where the measured programs live: executables that every user can reach, state and results in memory.

use crate::failure::{Failure, Outcome, Tried};
use crate::user::User;
use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Folders of one run of the benchmarks, gone with the value.
pub struct Workshop {
    executables: TempDir,
    memory: TempDir,
}

impl Workshop {
    /// `outlast` is copied, so that building it anew does not disturb.
    pub fn open(outlast: &Path) -> Outcome<Self> {
        let folder = |at: &Path| tempfile::Builder::new().prefix("outlast-bench.").tempdir_in(at).tried_on(at);
        let shm = Path::new("/dev/shm");
        let memory = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
        let workshop = Self { executables: folder(&std::env::temp_dir())?, memory: folder(&memory)? };
        for dir in [&workshop.executables, &workshop.memory] {
            fs::set_permissions(dir, Permissions::from_mode(0o755)).tried_on(dir.path())?;
        }
        if !outlast.exists() {
            return Err(Failure::NotHere(format!("{} is missing; build it with `make build`", outlast.display())));
        }
        let programs = Path::new(env!("BENCH_PROGRAMS"));
        fs::copy(outlast, workshop.executable("outlast")).tried_on(outlast)?;
        for entry in fs::read_dir(programs).tried_on(programs)? {
            let from = entry.tried_on(programs)?.path();
            let name = from.file_name().unwrap_or_default().to_string_lossy();
            fs::copy(&from, workshop.executable(&name)).tried_on(&from)?;
        }
        for user in [User::Own, User::Ordinary] {
            for folder in [workshop.state(user), workshop.work(user)] {
                fs::create_dir(&folder).tried_on(&folder)?;
                fs::set_permissions(&folder, Permissions::from_mode(0o700)).tried_on(&folder)?;
                workshop.give(&folder, user)?;
            }
        }
        Ok(workshop)
    }

    /// One of this crate's programs, or `outlast`.
    pub fn executable(&self, name: &str) -> PathBuf {
        self.executables.path().join(name)
    }

    /// `OUTLAST_STATE_DIR`.
    pub fn state(&self, user: User) -> PathBuf {
        self.memory.path().join(format!("state-{}", user.word()))
    }

    /// Where the programs run and leave their results.
    pub fn work(&self, user: User) -> PathBuf {
        self.memory.path().join(format!("work-{}", user.word()))
    }

    /// Makes a file for the programs to read.
    pub fn put(&self, user: User, name: &str, contents: &[u8]) -> Outcome<PathBuf> {
        let path = self.work(user).join(name);
        fs::write(&path, contents).tried_on(&path)?;
        self.give(&path, user)?;
        Ok(path)
    }

    fn give(&self, path: &Path, user: User) -> Outcome<()> {
        user.other_id().map_or(Ok(()), |id| chown(path, Some(id), Some(id)).tried_on(path))
    }
}
