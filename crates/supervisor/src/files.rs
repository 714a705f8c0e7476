//! The state folder of a user: one folder a program, holding its session, store, description, log and lock.

use crate::error::Error;
use crate::session::Session;
use outlast_image::layout::SESSION_LEN;
use rustix::fs::{flock, Dir, FlockOperation};
use rustix::fs::{fstat, fstatfs, ftruncate, mkdirat, open, openat, renameat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const TMPFS_MAGIC: u64 = 0x0102_1994;
const PRIVATE_FOLDER: Mode = Mode::from_raw_mode(0o700);
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
const FOLDER: OFlags = OFlags::from_bits_retain(
    OFlags::DIRECTORY.bits() | OFlags::NOFOLLOW.bits() | OFlags::CLOEXEC.bits() | OFlags::RDONLY.bits(),
);
/// Longest name of a program, in bytes.
pub const NAME_MAX: usize = 64;

/// The folder that holds one folder for each of a user's programs.
pub struct StateFolder {
    path: PathBuf,
    dir: OwnedFd,
}

impl StateFolder {
    /// Opens the user's state folder, making it if it is not there.
    ///
    /// `OUTLAST_STATE_DIR` if set; else /run/outlast (root) or $XDG_RUNTIME_DIR/outlast, if that is on a tmpfs and the
    /// user's; else /dev/shm/outlast-UID. It must be a folder of the user's with mode 0700 on a tmpfs: io_uring refuses
    /// memory of other file systems.
    pub fn open() -> Result<Self, Error> {
        if let Some(path) = std::env::var_os("OUTLAST_STATE_DIR") {
            return Self::open_at(PathBuf::from(path));
        }
        if let Some(path) = runtime_folder() {
            return Self::open_at(path.join("outlast"));
        }
        Self::open_at(PathBuf::from(format!("/dev/shm/outlast-{}", geteuid().as_raw())))
    }

    fn open_at(path: PathBuf) -> Result<Self, Error> {
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
            Ok(dir) => Ok(ProgramFolder { path: self.path.join(name), name: name.into(), dir }),
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
                let folder = ProgramFolder { path, name: name.into(), dir };
                let Some(lock) = folder.lock()? else { return Ok(None) };
                if folder.has("session") {
                    return Ok(None);
                }
                folder.remove("log.jsonl");
                Ok(Some((folder, lock)))
            }
        }
    }
}

/// Held by the supervisor of a program as long as it lives.
pub struct Lock(#[allow(dead_code, reason = "held open, never looked at")] OwnedFd);

/// The folder of one program.
pub struct ProgramFolder {
    path: PathBuf,
    name: String,
    dir: OwnedFd,
}

impl ProgramFolder {
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

    /// Opens a file of the folder, never through a link, close-on-exec, mode 0600 if it is made.
    pub fn open_file(&self, file: &str, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        openat(&self.dir, file, flags, PRIVATE_FILE).map_err(self.at(file))
    }

    /// Makes an empty session.
    pub fn create_session(&self, file: &str) -> Result<Session, Error> {
        self.remove(file);
        let fd = self.open_file(file, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR)?;
        ftruncate(&fd, SESSION_LEN).map_err(self.at(file))?;
        let session = Session::map(fd).map_err(self.at(file))?;
        session.format();
        Ok(session)
    }

    /// Opens the program's session.
    pub fn open_session(&self) -> Result<Session, Error> {
        let fd = self.open_file("session", OFlags::RDWR)?;
        let stat = fstat(&fd).map_err(self.at("session"))?;
        if (stat.st_size as u64) < SESSION_LEN {
            return Err(self.at("session")(Errno::NODATA));
        }
        Session::map(fd).map_err(self.at("session"))
    }

    /// Removes the folder, which must hold nothing any more but its lock.
    pub fn remove_self(&self) {
        self.remove("lock");
        // One that holds more is left, and taken over or refused by whoever wants the name.
        let _ = rustix::fs::rmdir(&self.path);
    }

    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// Why a folder cannot be used.
pub(crate) enum Fault {
    NotPrivate(&'static str),
    Kernel(Errno),
}

impl From<Errno> for Fault {
    fn from(e: Errno) -> Self {
        Self::Kernel(e)
    }
}

/// Opens a folder that only we can enter, making it if it is not there.
pub(crate) fn private_folder(parent: impl AsFd, path: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Fault> {
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
    if stat.st_mode & 0o777 != 0o700 {
        return Err(Fault::NotPrivate("others may enter it"));
    }
    Ok(dir)
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

/// Whether this is a name a program may have.
pub fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(good) && name != "." && name != ".."
}

/// A name made from the last component of a program's path; room is left for a number behind it.
fn name_of(program: &Path) -> String {
    let base = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let good = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = base.chars().map(good).take(NAME_MAX - 8).collect();
    match is_name(&name) {
        true => name,
        false => "program".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words() {
        for good in ["python3", "a", "x.y_z-1", &"n".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a\n", &"n".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn every_program_gets_a_good_name() {
        for path in ["/usr/bin/python3", "/", "", "./mein prögramm", "..", &"long".repeat(50)] {
            assert!(is_name(&name_of(Path::new(path))), "{path}");
        }
        assert_eq!(name_of(Path::new("/usr/bin/python3.11")), "python3.11");
    }
}
