//! A program's store, and the archive beside it, in a folder of a test's own.
#![allow(dead_code, reason = "no test uses all of it")]

use outlast_archive::{Archive, ArchiveError, Kept, Place, Policy, Seal, Writer, ID};
use outlast_store::{FileRegion, Params, Store, PAGE, SCRATCH_LEN};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub const LEN: u64 = 1 << 30;
pub const POLICY: Policy = Policy { every_ns: u64::MAX, keep_ns: u64::MAX, budget: 1 << 30 };

/// What a program holds: pages by address, and one object.
pub type State = BTreeMap<u64, u64>;

pub fn content(fill: u64) -> [u8; PAGE as usize] {
    let mut page = [0; PAGE as usize];
    for (n, word) in page.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(fill ^ (n as u64 * fill) << 20).to_le_bytes());
    }
    page
}

pub fn seal(key: u8, archive: u8) -> Arc<Seal> {
    Arc::new(Seal::new(&[key; 32], [archive; ID]))
}

pub struct Home {
    dir: TempDir,
    pub seal: Option<Arc<Seal>>,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir_in("/dev/shm").unwrap(), seal: None }
    }

    /// One whose archive is encrypted with a key of this byte alone.
    pub fn sealed(key: u8) -> Self {
        Self { seal: Some(seal(key, 1)), ..Self::new() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn place(&self) -> Place {
        match &self.seal {
            Some(seal) => self.bare().sealed(seal.clone()),
            None => self.bare(),
        }
    }

    /// The place without a key.
    pub fn bare(&self) -> Place {
        Place::beside(File::open(self.path()).unwrap().into(), "store")
    }

    pub fn file(&self, name: &str) -> OwnedFd {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(self.path().join(name)).unwrap();
        file.set_len(LEN).unwrap();
        file.into()
    }

    pub fn store(&self) -> Store<'static, FileRegion> {
        let region = FileRegion::create(self.file("store"), LEN).unwrap();
        let params = Params { ring_len: 64 << 10, id: *b"one store's own ", ..Params::default() };
        Store::format(region, &params, Vec::leak(vec![0; SCRATCH_LEN as usize])).unwrap()
    }

    pub fn archive(&self, policy: Policy) -> Archive {
        Archive::open(self.place(), policy).unwrap()
    }

    pub fn keep(&self, archive: &mut Archive) -> Result<Kept, ArchiveError> {
        archive.keep(self.file("store").as_fd(), &Writer::Nobody)
    }

    /// The files of the archive, with their content.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let ours = paths.filter(|path| path.to_str().unwrap().contains(".gen."));
        ours.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    pub fn lay_out(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        self.files().keys().for_each(|path| fs::remove_file(path).unwrap());
        files.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
}

pub fn commit(store: &mut Store<FileRegion>, state: &mut State, changes: impl IntoIterator<Item = (u64, u64)>) {
    store.begin();
    for (page, fill) in changes {
        store.page(page * PAGE, &content(fill));
        state.insert(page * PAGE, fill);
    }
    store.put(7, 1, &state.len().to_le_bytes());
    store.commit().unwrap();
    if store.wants_fold() {
        store.fold().unwrap();
    }
}

/// Whether a generation holds that.
pub fn holds(archive: &Archive, number: u64, state: &State) -> bool {
    let mut found = BTreeMap::new();
    let mut generation = archive.generation(number).unwrap();
    let read = generation.each(&mut |addr, pages| {
        for (n, page) in pages.chunks_exact(PAGE as usize).enumerate() {
            found.insert(addr + n as u64 * PAGE, page.to_vec());
        }
    });
    let wanted = state.iter().map(|(addr, fill)| (*addr, content(*fill).to_vec())).collect();
    read.is_ok() && found == wanted
}
