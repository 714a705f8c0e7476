//! Journals in files of the RAM file system: a service that needs another. Where each entry ends is a resource of this service,
//! its contents are the other's.
//!
//! A call to another component is not undone when this one dies with its own call unfinished, which is made again. So an entry is
//! written at a place that only this service's resource moves: written twice it is there once.

use std::collections::HashMap;

use outlast_glue_rt::{Grant, Resources, Stop};

use crate::fs::{CREATE, PIECE};
use crate::stubs::fs::Client as Files;
use crate::stubs::journal::Service;

/// The name by which the grant to the file system is passed.
pub const FILES: &str = "fs";
const NUMBER: u64 = 8;

#[derive(Clone, Default)]
pub struct Journals {
    last: u64,
    /// Keys of the resources, by descriptor.
    open: HashMap<u64, u64>,
    files: Option<Files>,
    /// Open files of this instance, by key; the file system forgets those of the one before.
    opened: HashMap<u64, u64>,
}

impl Journals {
    fn key(&self, journal: u64) -> Result<u64, Stop> {
        self.open.get(&journal).copied().ok_or(Stop::Errno(libc::EBADF))
    }

    fn files(&self) -> Result<&Files, Stop> {
        self.files.as_ref().ok_or(Stop::Errno(libc::ENOTCONN))
    }

    /// The journal's file, opened once.
    fn file(&mut self, resources: &Resources, key: u64) -> Result<u64, Stop> {
        if let Some(file) = self.opened.get(&key) {
            return Ok(*file);
        }
        let (_, name) = resources.all().find(|(known, _)| *known == key).ok_or(Stop::Errno(libc::ESTALE))?;
        let (file, _) = self.files()?.fs_split(0, name, CREATE)?;
        self.opened.insert(key, file);
        Ok(file)
    }
}

/// Where the entry before that one ends.
fn end(resources: &mut Resources, key: u64, number: u64) -> Result<u64, Stop> {
    let Some(before) = number.checked_sub(1) else { return Ok(0) };
    let bytes = resources.read(key, before * NUMBER, NUMBER as usize)?;
    // Only whole ones are written.
    Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
}

impl Service for Journals {
    fn born(&mut self) -> std::io::Result<()> {
        self.files = Some(Files::new(Grant::inherited(FILES)?.open()?));
        Ok(())
    }

    fn journal_open(&mut self, resources: &mut Resources, _client: u32, name: &[u8]) -> Result<u64, Stop> {
        let known = resources.all().find(|(_, known)| *known == name).map(|(key, _)| key);
        let key = match known {
            Some(key) => key,
            None => {
                let key = resources.fresh();
                resources.create(key, name)?;
                key
            }
        };
        // A name that the file system does not take is none.
        self.file(resources, key)?;
        self.last += 1;
        self.open.insert(self.last, key);
        Ok(self.last)
    }

    fn journal_append(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        journal: u64,
        entry: &[u8],
    ) -> Result<u64, Stop> {
        let key = self.key(journal)?;
        let file = self.file(resources, key)?;
        let number = resources.length(key)? / NUMBER;
        let at = end(resources, key, number)?;
        self.files()?.fs_seek(file, 0, at as i64)?;
        self.files()?.fs_write(file, entry)?;
        resources.write(key, number * NUMBER, &(at + entry.len() as u64).to_le_bytes())?;
        Ok(number)
    }

    fn journal_read(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        journal: u64,
        number: u64,
        most: u32,
    ) -> Result<(u64, Vec<u8>), Stop> {
        let key = self.key(journal)?;
        let file = self.file(resources, key)?;
        let count = resources.length(key)? / NUMBER;
        if number >= count {
            return Ok((count, Vec::new()));
        }
        let (from, to) = (end(resources, key, number)?, end(resources, key, number + 1)?);
        let length = (to - from).min(u64::from(most)).min(PIECE as u64) as u32;
        self.files()?.fs_seek(file, 0, from as i64)?;
        let (_, entry, _) = self.files()?.fs_read(file, length)?;
        Ok((count, entry))
    }

    fn journal_close(&mut self, _resources: &mut Resources, _client: u32, journal: u64) -> Result<i32, Stop> {
        self.open.remove(&journal).map(|_| 0).ok_or(Stop::Errno(libc::EBADF))
    }
}
