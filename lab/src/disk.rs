//! A disk with a write cache that forgets when power fails.
//!
//! What was written and not flushed lies in the cache, every version of every sector. A flush brings the newest ones onto the
//! medium. When power fails each cached sector has been written in one of its versions or not at all, whichever the seed
//! says: sectors reach a medium in any order, and only whole.

use fastrand::Rng;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// ext4 takes for granted that a block of its journal is written whole: of smaller ones it finds a damaged journal now and then.
pub const SECTOR: usize = 4096;

type Sector = [u8; SECTOR];

/// The disk; offsets and lengths in bytes, multiples of a sector.
pub struct Disk {
    medium: File,
    cache: BTreeMap<u64, Vec<Sector>>,
    pub flushes: u64,
    /// Writes until power fails; the disk answers nothing from then on.
    fuse: Option<u64>,
}

impl Disk {
    pub fn new(medium: File) -> Disk {
        Disk { medium, cache: BTreeMap::new(), flushes: 0, fuse: None }
    }

    /// One with an empty file system on it, as a file in this folder.
    pub fn formatted(room: &Path, bytes: u64) -> Result<Arc<Mutex<Disk>>, Box<dyn Error>> {
        let image = room.join("image");
        File::create(&image)?.set_len(bytes)?;
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0"])
            .arg(&image)
            .status()?;
        if !made.success() {
            return Err("mkfs.ext4 failed: is e2fsprogs there?".into());
        }
        Ok(Arc::new(Mutex::new(Disk::new(File::options().read(true).write(true).open(&image)?))))
    }

    pub fn len(&self) -> io::Result<u64> {
        Ok(self.medium.metadata()?.len())
    }

    pub fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.medium.read_exact_at(into, at)?;
        let first = at / SECTOR as u64;
        for (&sector, versions) in self.cache.range(first..first + (into.len() / SECTOR) as u64) {
            let from = (sector - first) as usize * SECTOR;
            if let Some(newest) = versions.last() {
                into[from..from + SECTOR].copy_from_slice(newest);
            }
        }
        Ok(())
    }

    /// Has power fail at the `writes`th write or flush from now on.
    pub fn light(&mut self, writes: u64) {
        self.fuse = Some(writes);
    }

    /// Has it failed?
    pub fn is_dead(&self) -> bool {
        self.fuse == Some(0)
    }

    fn burn(&mut self) {
        self.fuse = self.fuse.map(|left| left.saturating_sub(1));
    }

    /// Writes to the cache, or right through it.
    pub fn write(&mut self, at: u64, bytes: &[u8], through: bool) -> io::Result<()> {
        self.burn();
        if through && !self.is_dead() {
            self.cache.retain(|sector, _| !(at..at + bytes.len() as u64).contains(&(sector * SECTOR as u64)));
            return self.medium.write_all_at(bytes, at);
        }
        let first = at / SECTOR as u64;
        for (sector, content) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            let mut version = [0; SECTOR];
            version.copy_from_slice(content);
            self.cache.entry(sector).or_default().push(version);
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.burn();
        if self.is_dead() {
            return Ok(());
        }
        for (sector, versions) in std::mem::take(&mut self.cache) {
            if let Some(newest) = versions.last() {
                self.medium.write_all_at(newest, sector * SECTOR as u64)?;
            }
        }
        self.flushes += 1;
        Ok(())
    }

    /// Power fails. How many sectors were in the cache, and how many of those are lost or older than the last version.
    pub fn lose_power(&mut self, random: &mut Rng) -> io::Result<(usize, usize)> {
        self.fuse = None;
        let cached = std::mem::take(&mut self.cache);
        let (count, mut lost) = (cached.len(), 0);
        // Nothing of the cache, half of it, nearly all: which it is matters more than which sectors.
        let share = [0, 50, 95][random.u64(..3) as usize];
        for (sector, versions) in cached {
            if random.u64(..100) >= share {
                lost += 1;
                continue;
            }
            let version = random.u64(..versions.len() as u64) as usize;
            lost += usize::from(version + 1 != versions.len());
            self.medium.write_all_at(&versions[version], sector * SECTOR as u64)?;
        }
        Ok((count, lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        let medium = tempfile::tempfile().expect("a temporary file");
        medium.set_len(1 << 20).expect("room");
        Disk::new(medium)
    }

    fn sector(disk: &Disk, n: u64) -> u8 {
        let mut bytes = [0; SECTOR];
        disk.read(n * SECTOR as u64, &mut bytes).expect("readable");
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a torn sector");
        bytes[0]
    }

    #[test]
    fn what_was_flushed_survives_and_the_rest_may_not() {
        let (mut kept, mut lost, mut older) = (0, 0, 0);
        for seed in 0..200 {
            let mut disk = disk();
            disk.write(0, &[1; 4 * SECTOR], seed % 2 == 0).expect("a medium");
            if seed % 2 != 0 {
                disk.flush().expect("a medium");
            }
            disk.write(SECTOR as u64, &[2; SECTOR], false).expect("a cache");
            disk.write(SECTOR as u64, &[3; SECTOR], false).expect("a cache");
            assert_eq!((sector(&disk, 0), sector(&disk, 1)), (1, 3));
            disk.lose_power(&mut Rng::with_seed(seed)).expect("a medium");
            assert_eq!((sector(&disk, 0), sector(&disk, 2)), (1, 1));
            match sector(&disk, 1) {
                1 => lost += 1,
                2 => older += 1,
                3 => kept += 1,
                other => panic!("{other}"),
            }
        }
        assert!(kept > 10 && lost > 10 && older > 10, "{kept} {lost} {older}");
    }
}
