//! Reads a generation with arbitrary changes, plain or sealed. The library's checksums are all 0 here (`cfg(fuzzing)`), so that
//! changes get past them; they do not get past the seal.
//!
//! See `make fuzz`.
//!
//! An input says which archive is read (1 byte: whether it is sealed) and is a list of patches: file (1 byte, one of four), offset
//! in it (2 bytes, little-endian), length (1 byte, 4 bits used), bytes. What is beyond the end of a file makes it longer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_archive::{Archive, Generation, Place, Policy, Seal, Writer, ID};
use outlast_store::{FileRegion, Params, Store, PAGE};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const LEN: u64 = 64 << 20;
const FILES: [&str; 4] = ["store.gen.1", "store.gen.1.pages", "store.gen.2", "store.gen.2.pages"];

/// A folder with an archive of two generations, and its files.
struct Original {
    home: TempDir,
    seal: Option<Arc<Seal>>,
    files: Vec<Vec<u8>>,
}

fn store_file(home: &Path) -> OwnedFd {
    let path = home.join("store");
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).expect("memory");
    file.set_len(LEN).expect("memory");
    file.into()
}

impl Original {
    fn new(seal: Option<Arc<Seal>>) -> Self {
        let home = tempfile::tempdir_in("/dev/shm").expect("memory");
        let mut original = Self { home, seal, files: Vec::new() };
        let region = FileRegion::create(store_file(original.home.path()), LEN).expect("memory");
        let mut scratch = vec![0; outlast_store::SCRATCH_LEN as usize];
        let params = Params { ring_len: 64 << 10, ..Params::default() };
        let mut store = Store::format(region, &params, &mut scratch).expect("large enough");
        let policy = Policy { every_ns: u64::MAX, keep_ns: u64::MAX, budget: u64::MAX };
        let mut archive = Archive::open(original.place(), policy).expect("empty");
        for round in 1..3u8 {
            store.begin();
            for page in 0..6 / u64::from(round) {
                store.page(page * PAGE, &[round; PAGE as usize]);
            }
            store.put(1, 1, &[round; 50]);
            store.commit().expect("room");
            let file = store_file(original.home.path());
            archive.keep(file.as_fd(), &Writer::Nobody).expect("room");
        }
        original.files = FILES.iter().map(|name| fs::read(original.path(name)).expect("written")).collect();
        original
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn place(&self) -> Place {
        let place = Place::beside(File::open(self.home.path()).expect("there").into(), "store");
        match &self.seal {
            Some(seal) => place.sealed(seal.clone()),
            None => place,
        }
    }

    /// Lays out the files, changed.
    fn patched(&self, mut patches: &[u8]) {
        let mut files = self.files.clone();
        while let [file, low, high, len, rest @ ..] = patches {
            let file = &mut files[*file as usize % FILES.len()];
            let at = u16::from_le_bytes([*low, *high]) as usize % (file.len() + 64);
            let len = (*len as usize % 16).min(rest.len());
            file.resize(file.len().max(at + len), 0);
            file[at..at + len].copy_from_slice(&rest[..len]);
            patches = &rest[len..];
        }
        FILES.iter().zip(files).for_each(|(name, bytes)| fs::write(self.path(name), bytes).expect("memory"));
    }

    fn read(&self) {
        let place = self.place();
        for number in 1..3 {
            let Ok(mut generation) = Generation::read(&place, number) else { continue };
            let round = number as u8;
            let _ = generation.each(&mut |addr, pages| {
                // Who cannot seal cannot change anything either.
                let as_written = |page: &[u8]| page.iter().all(|byte| *byte == page[0] && (1..=round).contains(byte));
                assert!(self.seal.is_none() || addr < 6 * PAGE && pages.chunks(PAGE as usize).all(as_written));
            });
        }
        let _ = Archive::list(&place).expect("a folder");
    }
}

thread_local! {
    static ORIGINALS: [Original; 2] = [Original::new(None), Original::new(Some(Arc::new(Seal::new(&[7; 32], [1; ID]))))];
}

fuzz_target!(|input: &[u8]| {
    let [which, patches @ ..] = input else { return };
    ORIGINALS.with(|originals| {
        let original = &originals[*which as usize % 2];
        original.patched(patches);
        original.read();
    });
});
