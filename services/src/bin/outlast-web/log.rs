//! The log of requests: gathered in memory, written when the clock ticks or much has gathered.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::Failure;

const GATHERED: usize = 65_536;

pub struct Log {
    path: PathBuf,
    file: File,
    lines: Vec<u8>,
}

/// A line of the log: `time client "method target" status bytes`, the time in UTC.
pub fn line(client: IpAddr, request: &str, status: u16, bytes: u64) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    format!("{time} {client} \"{}\" {status} {bytes}\n", request.escape_default())
}

impl Log {
    /// Adds to a file that is there.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::options().append(true).create(true).open(path);
        let file = file.map_err(|error| Failure::Log(path.to_path_buf(), error))?;
        Ok(Self { path: path.to_path_buf(), file, lines: Vec::new() })
    }

    pub fn add(&mut self, line: &str) -> Result<(), Failure> {
        self.lines.extend_from_slice(line.as_bytes());
        match self.lines.len() > GATHERED {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.file.write_all(&self.lines).map_err(|error| Failure::Log(self.path.clone(), error))?;
        self.lines.clear();
        Ok(())
    }
}
