//! Where runs happen: a folder with a random name for the campaign, a working folder for each run.

use crate::campaign::Target;
use crate::error::{on, Error};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// All rooms of a campaign; gone with the value.
pub struct House {
    folder: TempDir,
}

const PREFIX: &str = "outlast-inject.";
/// In the results' folder: where the house is, so that one that a killed campaign left is found.
pub const NOTE: &str = "house";

impl House {
    /// Builds a house: the state folder on a tmpfs, and the template of working folders.
    pub fn build(target: &Target, campaign: &Path, results: &Path) -> Result<Self, Error> {
        let place = Path::new("/dev/shm");
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(place);
        let folder = folder.map_err(on("make a folder in", place))?;
        let house = Self { folder };
        let note = results.join(NOTE);
        fs::write(&note, house.folder.path().as_os_str().as_encoded_bytes()).map_err(on("write", &note))?;
        let template = house.template();
        make(&template)?;
        if let Some(from) = &target.folder {
            let from = campaign.parent().unwrap_or(Path::new(".")).join(from);
            copy(&from, &template)?;
        }
        if let Some(words) = &target.prepare {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).current_dir(&template).stdin(Stdio::null());
            let output = command.output().map_err(|e| Error::Prepare(format!("{}: {e}", words[0])))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
                return Err(Error::Prepare(format!("{}: {}: {said}", words[0], output.status)));
            }
        }
        Ok(house)
    }

    fn template(&self) -> PathBuf {
        self.folder.path().join("template")
    }

    /// The state folder of all runs under outlast.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A new working folder, gone with the value.
    pub fn room(&self) -> Result<Room, Error> {
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("run.").permissions(private).tempdir_in(self.folder.path());
        let folder = folder.map_err(on("make a folder in", self.folder.path()))?;
        let room = Room { folder };
        copy(&self.template(), &room.work())?;
        Ok(room)
    }
}

/// Where one run happens.
pub struct Room {
    folder: TempDir,
}

impl Room {
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }
}

/// The house that a killed campaign left, if this folder names one of ours.
pub fn left(results: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(fs::read_to_string(results.join(NOTE)).ok()?);
    let named = path.parent() == Some(Path::new("/dev/shm"))
        && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let meta = fs::symlink_metadata(&path).ok()?;
    let ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o77 == 0;
    (named && ours).then_some(path)
}

fn make(folder: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(on("make", folder))
}

/// Some programs write the time of their input into their output.
fn keep_time(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = fs::metadata(from)?.modified()?;
    fs::File::options().append(true).open(to)?.set_modified(modified)
}

/// Copies a folder with all that is in it: files with their modes, links as links.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    if !to.exists() {
        make(to)?;
    }
    for entry in fs::read_dir(from).map_err(on("list", from))? {
        let entry = entry.map_err(on("list", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(on("look at", &source))?;
        if kind.is_dir() {
            copy(&source, &target)?;
            let mode = fs::metadata(&source).map_err(on("look at", &source))?.permissions().mode();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).map_err(on("set the mode of", &target))?;
        } else if kind.is_symlink() {
            let link = fs::read_link(&source).map_err(on("read", &source))?;
            std::os::unix::fs::symlink(link, &target).map_err(on("make", &target))?;
        } else if kind.is_file() {
            fs::copy(&source, &target).map_err(on("copy", &source))?;
            keep_time(&source, &target).map_err(on("set the time of", &target))?;
        }
    }
    Ok(())
}
