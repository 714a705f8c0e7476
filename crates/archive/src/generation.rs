//! One generation, read back.

use crate::block::{self, Sealing, Spot};
use crate::error::ArchiveError;
use crate::index::{Index, Object};
use crate::place::{Part, Place};
use outlast_store::{Params, PlainFile, Store, PAGE, SCRATCH_LEN};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Blocks that are remembered: pages of one neighbourhood may lie in several.
const REMEMBERED: usize = 32;

/// A store that is to hold a generation.
pub struct Target {
    pub file: OwnedFd,
    /// The generation becomes commit `base_seq + 1`.
    pub params: Params,
    /// What is to be undone in the kernel's state first: kinds and bytes of journal entries.
    pub journal: Vec<(u16, Vec<u8>)>,
}

/// A generation of an archive.
pub struct Generation<'p> {
    place: &'p Place,
    index: Index,
    files: HashMap<u64, File>,
    blocks: VecDeque<(Spot, Rc<Vec<u8>>)>,
    tell: &'p dyn Fn(u64, u64),
}

impl<'p> Generation<'p> {
    /// Reads the index of a generation.
    ///
    /// # Errors
    /// `Missing`, `Damaged`, `Newer`, and those about keys.
    pub fn read(place: &'p Place, number: u64) -> Result<Self, ArchiveError> {
        let file = place.open(number, Part::Index, false).map_err(|_| ArchiveError::Missing(number))?;
        let index = Index::decode(number, std::io::BufReader::new(file), place.seal())?;
        Ok(Self { place, index, files: HashMap::new(), blocks: VecDeque::new(), tell: &|_, _| () })
    }

    /// Calls `tell(pages read, all pages)` now and then, each time that the pages are read.
    pub fn telling(self, tell: &'p dyn Fn(u64, u64)) -> Self {
        Self { tell, ..self }
    }

    /// The commit that it is a copy of.
    pub fn seq(&self) -> u64 {
        self.index.seq
    }

    /// Reads all of it, so that writing it to a store cannot meet damage.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn verify(&mut self) -> Result<(), ArchiveError> {
        self.each(&mut |_, _| ())
    }

    /// Calls `f(address, pages)` for all pages, in the order of addresses.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn each(&mut self, f: &mut dyn FnMut(u64, &[u8])) -> Result<(), ArchiveError> {
        let (mut done, all) = (0, self.index.pages());
        let pieces = std::mem::take(&mut self.index.pieces);
        let whole = pieces.iter().all(|piece| {
            (self.tell)(done, all);
            done += u64::from(piece.count);
            let Some(block) = self.block(piece.spot(), piece.len) else { return false };
            let first = usize::from(piece.first) * PAGE as usize;
            let pages = block.get(first..).and_then(|rest| rest.get(..usize::from(piece.count) * PAGE as usize));
            pages.map(|pages| f(piece.addr, pages)).is_some()
        });
        self.index.pieces = pieces;
        whole.then_some(()).ok_or(ArchiveError::Damaged(self.index.number))
    }

    fn block(&mut self, spot: Spot, len: u32) -> Option<Rc<Vec<u8>>> {
        if let Some((_, block)) = self.blocks.iter().find(|(known, _)| *known == spot) {
            return Some(block.clone());
        }
        let file = match self.files.entry(spot.file) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.place.open(spot.file, Part::Pages, false).ok()?)
            }
        };
        let sealing = match self.place.seal() {
            Some(seal) => Some(Sealing { seal, id: self.index.files.iter().find(|known| known.file == spot.file)?.id }),
            None => None,
        };
        let block = Rc::new(block::read(file, spot, len, sealing)?);
        if self.blocks.len() == REMEMBERED {
            self.blocks.pop_front();
        }
        self.blocks.push_back((spot, block.clone()));
        Some(block)
    }

    /// Makes the store hold this generation and nothing else. To be verified before: a store that is left half written is none.
    ///
    /// # Errors
    /// `Damaged`, `Store`, `Write`, `NoRoom`, `Kernel`.
    pub fn write_to(&mut self, target: Target) -> Result<(), ArchiveError> {
        let mut scratch = vec![0; SCRATCH_LEN as usize];
        let region = PlainFile::new(target.file)?;
        let mut store = Store::format(region, &target.params, &mut scratch).map_err(ArchiveError::Store)?;
        store.begin();
        self.each(&mut |addr, pages| store.pages(addr, pages))?;
        for Object { kind, key, bytes } in &self.index.objects {
            store.put(*kind, *key, bytes);
        }
        let mut written = store.commit().map(drop);
        for (kind, bytes) in &target.journal {
            written = written.and_then(|()| store.journal_append(*kind, bytes));
        }
        match store.region().error() {
            Some(error) => Err(error.into()),
            None => written.map_err(ArchiveError::Write),
        }
    }
}
