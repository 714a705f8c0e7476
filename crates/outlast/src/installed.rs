//! Modules that a person has loaded: files in a folder of theirs.

use outlast_modules as built_in;
use outlast_plugins::read_own;
use outlast_supervisor::private_folder::{private_folder, Fault, FOLDER};
use outlast_supervisor::program_name::is_name;
use outlast_supervisor::Error;
use rustix::fs::{openat, renameat, unlinkat, AtFlags, Dir, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The variable that names another folder.
const VARIABLE: &str = "OUTLAST_MODULES_DIR";
/// Root's.
const SYSTEM: &str = "/etc/outlast/modules";
/// A user's, in the home folder.
const OF_USER: &str = ".config/outlast/modules";
const SUFFIX: &str = ".wasm";

/// The folder.
pub struct Installed {
    path: PathBuf,
    dir: OwnedFd,
}

impl Installed {
    /// Opens it; none: nothing was ever loaded.
    pub fn open() -> Result<Option<Self>, Error> {
        let path = folder()?;
        match openat(CWD, &path, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            _ => Self::make().map(Some),
        }
    }

    /// Opens it, making it if it is not there.
    pub fn make() -> Result<Self, Error> {
        let path = folder()?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::Input(parent.into(), e))?;
        }
        match private_folder(CWD, &path) {
            Ok(dir) => Ok(Self { path, dir }),
            Err(Fault::Kernel(e)) => Err(Error::File(path, e)),
            Err(Fault::NotPrivate(why)) => Err(Error::Plugin(path.display().to_string(), why.into())),
        }
    }

    /// The names of all modules in it, sorted.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let entries = Dir::read_from(&self.dir).map_err(|e| Error::File(self.path.clone(), e))?;
        let file =
            |entry: rustix::io::Result<rustix::fs::DirEntry>| entry.ok()?.file_name().to_str().ok().map(String::from);
        let files = entries.filter_map(file);
        let mut names: Vec<String> =
            files.filter_map(|file| file.strip_suffix(SUFFIX).filter(|name| is_name(name)).map(String::from)).collect();
        names.sort();
        Ok(names)
    }

    /// Puts a module there, in the place of another one of its name: whoever looks finds either, whole.
    pub fn add(&self, name: &str, component: &[u8]) -> Result<(), Error> {
        let (new, file) = (format!(".{name}.new"), format!("{name}{SUFFIX}"));
        let failed = |e| Error::File(self.path.join(&file), e);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // One that was left half.
        let _ = unlinkat(&self.dir, &*new, AtFlags::empty());
        let mut made = File::from(openat(&self.dir, &*new, flags, Mode::from_raw_mode(0o600)).map_err(failed)?);
        let written = made.write_all(component).and_then(|()| made.sync_all());
        written.map_err(|e| failed(Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        renameat(&self.dir, &*new, &self.dir, &*file).map_err(failed)
    }

    /// Takes a module away; whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let file = format!("{name}{SUFFIX}");
        match unlinkat(&self.dir, &*file, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(Error::File(self.path.join(file), e)),
        }
    }
}

/// Where a module of this name is, or would be.
pub fn file_of(name: &str) -> Result<PathBuf, Error> {
    Ok(folder()?.join(format!("{name}{SUFFIX}")))
}

/// What is in such a file.
pub fn contents(file: &Path) -> Result<Vec<u8>, String> {
    read_own(CWD, file).map_err(|e| match e {
        outlast_plugins::Error::File(_, Errno::NOENT) => {
            "it is not loaded; `outlast module list` shows which are".into()
        }
        e => e.to_string(),
    })
}

/// Whether a module may have this name.
pub fn check_name(name: &str) -> Result<(), Error> {
    if !is_name(name) || name.starts_with('.') {
        return Err(Error::BadName(name.into()));
    }
    match built_in::all().iter().any(|module| module.name == name) {
        true => Err(Error::Plugin(name.into(), "one that is built in has this name".into())),
        false => Ok(()),
    }
}

fn folder() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return std::path::absolute(&path).map_err(|e| Error::Input(path, e));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(SYSTEM.into());
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.map(|home| home.join(OF_USER))
        .ok_or_else(|| Error::Plugin(OF_USER.into(), format!("there is no home folder; set HOME or {VARIABLE}")))
}
