//! Off: no program begins protected any more, until outlast is on again. A file says so, since whoever switches it off may have no
//! time for more; it is gone with the next boot.

use crate::state_folder::StateFolder;
use rustix::fs::{openat, statat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::path::Path;

/// For everybody; only root makes files there.
pub const OF_ALL: &str = "/run/outlast.off";
/// For one user, in the state folder. No program has this name.
const OF_USER: &str = "+off";

/// For whom it is switched.
pub enum Whose<'a> {
    All(&'a Path),
    User(&'a StateFolder),
}

impl Whose<'_> {
    pub fn is_off(&self) -> bool {
        match self {
            Self::All(path) => statat(CWD, *path, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
            Self::User(state) => statat(state.dir(), OF_USER, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
        }
    }

    /// Switches it.
    pub fn switch(&self, off: bool) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let made = match (self, off) {
            (Self::All(path), true) => openat(CWD, *path, flags, Mode::from_raw_mode(0o644)).map(drop),
            (Self::User(state), true) => openat(state.dir(), OF_USER, flags, Mode::from_raw_mode(0o600)).map(drop),
            (Self::All(path), false) => unlinkat(CWD, *path, AtFlags::empty()),
            (Self::User(state), false) => unlinkat(state.dir(), OF_USER, AtFlags::empty()),
        };
        made.or_else(|e| if !off && e == Errno::NOENT { Ok(()) } else { Err(e) })
    }
}

/// Whether it is off for the user whose folder this is.
pub fn is_off(state: &StateFolder) -> bool {
    Whose::All(Path::new(OF_ALL)).is_off() || Whose::User(state).is_off()
}
