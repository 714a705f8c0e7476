//! Wishes that lie in the program's folder, not in the session: the program can write to that, and may have fewer rights than its
//! supervisor. They outlive a supervisor, which the next one finds them by.

use crate::error::Error;
use crate::program_folder::ProgramFolder;
use rustix::fs::{fstat, OFlags};
use rustix::process::geteuid;
use std::fs::File;
use std::io::{Read, Write};

/// Longest wish or answer.
const LONGEST: u64 = 64 << 10;

/// Writes one anew.
pub(crate) fn write(folder: &ProgramFolder, file: &str, bytes: &[u8]) -> Result<(), Error> {
    folder.remove(file);
    let fd = folder.open_file(file, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY)?;
    let written = File::from(fd).write_all(bytes);
    written.map_err(|e| {
        Error::File(folder.path().join(file), rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO))
    })
}

/// Reads one that nobody but our user can have written.
pub(crate) fn read(folder: &ProgramFolder, file: &str) -> Result<Vec<u8>, Error> {
    let fd = folder.open_file(file, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let at = |e| Error::File(folder.path().join(file), e);
    if fstat(&fd).map_err(at)?.st_uid != geteuid().as_raw() {
        return Err(at(rustix::io::Errno::PERM));
    }
    let mut bytes = Vec::new();
    let read = File::from(fd).take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|e| at(rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO)))?;
    Ok(bytes)
}
