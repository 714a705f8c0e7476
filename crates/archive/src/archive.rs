//! The archive of one program: keeping generations, and giving them up.

use crate::block::{Sealing, Spot};
use crate::copying::{copy, Copied, Output, Writer};
use crate::error::ArchiveError;
use crate::generation::Generation;
use crate::index::{FileId, Index, Kept, Piece};
use crate::pages::Pages;
use crate::place::{Part, Place};
use crate::policy::{surplus, Policy};
use crate::seal::random;
use rustix::fs::{fallocate, FallocateFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::time::SystemTime;

/// Bytes of a file that can be given back separately.
const UNIT: u64 = 4096;

/// How many indices name a block, and its length.
#[derive(Clone, Copy)]
struct Use {
    len: u32,
    indices: u32,
}

/// All generations of a program. Whoever opens it is the only one that changes it.
pub struct Archive {
    place: Place,
    policy: Policy,
    /// Ascending.
    kept: Vec<Kept>,
    next: u64,
    blocks: BTreeMap<Spot, Use>,
    /// What the newest generation holds, if that is known.
    newest: Pages,
    /// Ids of the files of sealed blocks that were written by this process.
    ids: BTreeMap<u64, FileId>,
    /// What could not be read when the archive was opened.
    damaged: Vec<u64>,
}

impl Archive {
    /// Opens an archive, which may be empty, and removes what was left half done or cannot be read.
    ///
    /// # Errors
    /// `Kernel`, and those about keys: then everything is left as it is, for whoever has the right key.
    pub fn open(place: Place, policy: Policy) -> Result<Self, ArchiveError> {
        let files = place.files()?;
        let next = files.last().map_or(1, |(number, _)| number + 1);
        let (kept, blocks, newest) = (Vec::new(), BTreeMap::new(), Pages::default());
        let (ids, damaged) = (BTreeMap::new(), Vec::new());
        let mut archive = Self { place, policy, kept, next, blocks, newest, ids, damaged };
        for (number, _) in files.iter().filter(|(_, part)| *part == Part::Index) {
            archive.take_up(*number)?;
        }
        for (number, _) in files.iter().filter(|(_, part)| *part == Part::NewIndex) {
            archive.place.remove(*number, Part::NewIndex);
        }
        // Whoever wants one would only be told that it is damaged.
        archive.damaged.iter().for_each(|number| archive.place.remove(*number, Part::Index));
        for (number, _) in files.iter().filter(|(_, part)| *part == Part::Pages) {
            archive.tidy(*number);
        }
        Ok(archive)
    }

    /// What is kept, the oldest first, for whoever only looks.
    ///
    /// # Errors
    /// `Kernel`. An index that cannot be read is left out.
    pub fn list(place: &Place) -> Result<Vec<Kept>, ArchiveError> {
        let indices = place.files()?.into_iter().filter(|(_, part)| *part == Part::Index);
        Ok(indices.filter_map(|(number, _)| listed(place, number)).collect())
    }

    /// What is kept, the oldest first.
    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What could not be read when the archive was opened, and is gone.
    pub fn damaged(&self) -> &[u64] {
        &self.damaged
    }

    fn take_up(&mut self, number: u64) -> Result<(), ArchiveError> {
        match (self.index(number), listed(&self.place, number)) {
            (Ok(index), Some(kept)) => {
                self.count(&index.pieces);
                self.kept.push(kept);
            }
            (Err(error), _) if error.is_about_key() => return Err(error),
            _ => self.damaged.push(number),
        }
        Ok(())
    }

    fn index(&self, number: u64) -> Result<Index, ArchiveError> {
        Index::decode(number, self.place.open(number, Part::Index, false)?, self.place.seal())
    }

    fn count(&mut self, pieces: &[Piece]) {
        for (spot, len) in blocks_of(pieces) {
            self.blocks.entry(spot).or_insert(Use { len, indices: 0 }).indices += 1;
        }
    }

    /// Keeps the state of the last commit of a store, and gives up generations that are too old, too many or too large.
    ///
    /// # Errors
    /// Any; what was kept before is kept, as far as there is room for it.
    pub fn keep(&mut self, store: BorrowedFd<'_>, writer: &Writer<'_>) -> Result<Kept, ArchiveError> {
        let kept = loop {
            match self.try_keep(store, writer) {
                Err(ArchiveError::NoRoom | ArchiveError::OverBudget) if !self.kept.is_empty() => {
                    // What the new one would share with the others takes no room of its own: the whole rest may have to go.
                    self.give_up(self.kept[0].number);
                }
                other => break other?,
            }
        };
        self.thin_out(kept.time_us);
        Ok(kept)
    }

    fn try_keep(&mut self, store: BorrowedFd<'_>, writer: &Writer<'_>) -> Result<Kept, ArchiveError> {
        let number = self.next;
        let known = if self.newest.is_worn() { Pages::default() } else { std::mem::take(&mut self.newest) };
        let made = self.make(number, store, writer, &known);
        if let Writer::Program(hold) = writer {
            hold.release();
        }
        match made {
            Ok((pages, index)) => {
                self.next += 1;
                self.newest = pages;
                self.count(&index.pieces);
                self.ids = index.files.into_iter().map(|file| (file.file, file)).collect();
                let kept = listed(&self.place, number).ok_or(ArchiveError::Damaged(number))?;
                self.kept.push(kept);
                Ok(kept)
            }
            Err(error) => {
                self.newest = known;
                [Part::NewIndex, Part::Index, Part::Pages].into_iter().for_each(|part| self.place.remove(number, part));
                Err(error)
            }
        }
    }

    /// Writes the files of a generation.
    fn make(
        &self,
        number: u64,
        store: BorrowedFd<'_>,
        writer: &Writer<'_>,
        known: &Pages,
    ) -> Result<(Pages, Index), ArchiveError> {
        let file = self.place.create(number, Part::Pages)?;
        let most = self.policy.budget;
        let own = FileId { file: number, id: random()? };
        let sealing = self.place.seal().map(|seal| Sealing { seal, id: own.id });
        let mut output = Output { place: &self.place, file, number, sealing, end: 0, most, looked: 0 };
        let Copied { seq, pages, objects } = copy(store, writer, known, &mut output)?;
        // Once it is read: nobody who asks for the state at a time gets a later one.
        let time_us = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64);
        let (pieces, mut files) = (pages.pieces(), Vec::new());
        if sealing.is_some() {
            let named: BTreeSet<u64> = pieces.iter().map(|piece| piece.file).collect();
            let id = |file: &u64| if *file == number { Some(own) } else { self.ids.get(file).copied() };
            // What this process did not write it compares nothing with.
            files = named.iter().map(id).collect::<Option<_>>().ok_or(ArchiveError::Damaged(number))?;
        }
        let index = Index { number, time_us, seq, pieces, files, objects };
        let mut file = self.place.create(number, Part::NewIndex)?;
        file.write_all(&index.encode(self.place.seal())?)?;
        self.place.promote(number)?;
        Ok((pages, index))
    }

    /// Gives up what the policy does not want any more.
    fn thin_out(&mut self, now: u64) {
        let times: Vec<u64> = self.kept.iter().map(|kept| kept.time_us).collect();
        let gone: Vec<u64> = surplus(&times, now, &self.policy).into_iter().map(|n| self.kept[n].number).collect();
        gone.into_iter().for_each(|number| self.give_up(number));
        while self.kept.len() > 1 && self.taken() > self.policy.budget {
            self.give_up(self.kept[0].number);
        }
    }

    /// Bytes that all files take.
    pub fn taken(&self) -> u64 {
        let files = self.place.files().unwrap_or_default();
        files.into_iter().map(|(number, part)| self.place.taken(number, part)).sum()
    }

    /// Gives up all generations after this one.
    pub fn give_up_after(&mut self, number: u64) {
        let later: Vec<u64> = self.kept.iter().map(|kept| kept.number).filter(|kept| *kept > number).collect();
        later.into_iter().for_each(|number| self.give_up(number));
        // The next one is compared with nothing: what the newest holds now is in no memory.
        self.newest = Pages::default();
    }

    fn give_up(&mut self, number: u64) {
        let index = self.index(number).ok();
        self.place.remove(number, Part::Index);
        self.kept.retain(|kept| kept.number != number);
        if self.kept.is_empty() {
            self.newest = Pages::default();
        }
        let mut files: Vec<u64> = Vec::new();
        for (spot, _) in index.iter().flat_map(|index| blocks_of(&index.pieces)) {
            if let Some(block) = self.blocks.get_mut(&spot) {
                block.indices -= 1;
                if block.indices == 0 {
                    self.blocks.remove(&spot);
                    files.push(spot.file);
                }
            }
        }
        files.dedup();
        files.into_iter().for_each(|file| self.tidy(file));
    }

    /// Gives back what no index names of a file of blocks.
    fn tidy(&self, number: u64) {
        let of_file = Spot { file: number, off: 0 }..Spot { file: number + 1, off: 0 };
        let mut live = self.blocks.range(of_file).peekable();
        if live.peek().is_none() {
            return self.place.remove(number, Part::Pages);
        }
        let Ok(file) = self.place.open(number, Part::Pages, true) else { return };
        let end = file.metadata().map_or(0, |metadata| metadata.len());
        let mut reached = 0;
        for (spot, block) in live {
            punch(&file, reached, spot.off);
            reached = spot.off + u64::from(block.len);
        }
        punch(&file, reached, end);
    }

    /// A generation, to be read.
    ///
    /// # Errors
    /// `Missing`, `Damaged`, `Newer`, and those about keys.
    pub fn generation(&self, number: u64) -> Result<Generation<'_>, ArchiveError> {
        Generation::read(&self.place, number)
    }
}

/// The blocks that pieces name, each once.
fn blocks_of(pieces: &[Piece]) -> BTreeMap<Spot, u32> {
    pieces.iter().map(|piece| (piece.spot(), piece.len)).collect()
}

fn listed(place: &Place, number: u64) -> Option<Kept> {
    let mut file = place.open(number, Part::Index, false).ok()?;
    let bytes = place.taken(number, Part::Index) + place.taken(number, Part::Pages);
    Kept::read(number, &mut file).ok().map(|kept| Kept { bytes, ..kept })
}

/// Gives back the whole units between two offsets.
fn punch(file: &File, from: u64, to: u64) {
    let (from, to) = (from.next_multiple_of(UNIT), to / UNIT * UNIT);
    if from < to {
        // Where that is not possible, room is lost and nothing else.
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, to - from);
    }
}
