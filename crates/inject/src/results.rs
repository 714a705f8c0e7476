//! The results' file: a line an experiment, on the medium before the next one counts.

use crate::error::{on, Error};
use crate::record::{Experiment, Head, Line, VERSION};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const FILE: &str = "results.jsonl";

/// Open for appending, and nobody else's.
pub struct Results {
    path: PathBuf,
    file: File,
}

/// What a results' file holds.
pub struct Found {
    pub head: Option<Head>,
    pub experiments: Vec<Experiment>,
}

impl Results {
    /// Opens or makes the file in a folder; a line that a death cut short is taken off.
    pub fn open(folder: &Path) -> Result<(Self, Found), Error> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(on("make", folder))?;
        // In a folder that others share somebody else may have made it, and files in it lead anywhere.
        let meta = fs::symlink_metadata(folder).map_err(on("look at", folder))?;
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            return Err(Error::NotOurs(folder.into()));
        }
        let path = folder.join(FILE);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&path).map_err(on("open", &path))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Error::Busy(folder.into()))?;
        let (found, whole) = load(&path)?;
        file.set_len(whole).map_err(on("shorten", &path))?;
        file.seek(SeekFrom::End(0)).map_err(on("seek in", &path))?;
        Ok((Self { path, file }, found))
    }

    pub fn add(&mut self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|e| Error::File("write", self.path.clone(), e.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(on("write", &self.path))
    }
}

/// Reads the results in a folder.
pub fn read(folder: &Path) -> Result<(Head, Vec<Experiment>), Error> {
    let path = folder.join(FILE);
    let (found, _) = load(&path)?;
    let head = found.head.ok_or(Error::BadResults(path, 1))?;
    Ok((head, found.experiments))
}

/// What is in the file, and how many bytes of it are whole lines.
fn load(path: &Path) -> Result<(Found, u64), Error> {
    let bytes = fs::read(path).map_err(on("read", path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut found = Found { head: None, experiments: Vec::new() };
    for (number, line) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let bad = || Error::BadResults(path.into(), number + 1);
        match serde_json::from_slice(line).map_err(|_| bad())? {
            Line::Campaign(head) if number == 0 && head.version == VERSION => found.head = Some(head),
            Line::Experiment(experiment) if number > 0 => found.experiments.push(experiment),
            _ => return Err(bad()),
        }
    }
    Ok((found, whole as u64))
}
