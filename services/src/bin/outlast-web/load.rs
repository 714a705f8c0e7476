//! Copies a folder of the disk into the RAM file system.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outlast_services::fs::{CREATE, FOLDER, PIECE};

use crate::failure::Failure;
use crate::stubs::Fs;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    pub files: u64,
    pub bytes: u64,
}

/// All regular files below `root`, and those that a symbolic link leads to; a link to a folder is left out, for it might lead back.
pub fn load(files: &Fs, root: &Path) -> Result<Loaded, Failure> {
    let mut loaded = Loaded::default();
    folder(files, root, &mut Vec::new(), &mut loaded)?;
    Ok(loaded)
}

fn folder(files: &Fs, from: &Path, to: &mut Vec<u8>, loaded: &mut Loaded) -> Result<(), Failure> {
    let unreadable = |error| Failure::Read(from.to_path_buf(), error);
    for entry in std::fs::read_dir(from).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let link = entry.file_type().map_err(unreadable)?.is_symlink();
        // One that leads nowhere is nothing to serve.
        let Ok(kind) = std::fs::metadata(&path) else { continue };
        let length = to.len();
        if length > 0 {
            to.push(b'/');
        }
        to.extend_from_slice(entry.file_name().as_bytes());
        if kind.is_dir() && !link {
            let full = |error| Failure::Full(path.clone(), error);
            let (made, _) = files.fs_split(0, to, CREATE | FOLDER).map_err(full)?;
            files.fs_release(made)?;
            folder(files, &path, to, loaded)?;
        } else if kind.is_file() {
            loaded.bytes += file(files, &path, to)?;
            loaded.files += 1;
        }
        to.truncate(length);
    }
    Ok(())
}

fn file(files: &Fs, from: &Path, to: &[u8]) -> Result<u64, Failure> {
    let bytes = std::fs::read(from).map_err(|error| Failure::Read(from.to_path_buf(), error))?;
    let full = |error| Failure::Full(from.to_path_buf(), error);
    let (file, _) = files.fs_split(0, to, CREATE).map_err(full)?;
    for piece in bytes.chunks(PIECE) {
        files.fs_write(file, piece).map_err(full)?;
    }
    files.fs_release(file)?;
    Ok(bytes.len() as u64)
}
