//! The archive of one program: keeping generations, and giving them up.

use crate::block::Spot;
use crate::copying::{copy, Copied, Output, Writer};
use crate::error::ArchiveError;
use crate::generation::Generation;
use crate::index::{Index, Kept, Piece};
use crate::pages::Pages;
use crate::place::{Part, Place};
use crate::policy::{surplus, Policy};
use rustix::fs::{fallocate, FallocateFlags};
use std::collections::BTreeMap;
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
}

impl Archive {
    /// Opens an archive, which may be empty, and removes what was left half done.
    ///
    /// # Errors
    /// `Kernel`.
    pub fn open(place: Place, policy: Policy) -> Result<Self, ArchiveError> {
        let files = place.files()?;
        let next = files.last().map_or(1, |(number, _)| number + 1);
        let (kept, blocks, newest) = (Vec::new(), BTreeMap::new(), Pages::default());
        let mut archive = Self { place, policy, kept, next, blocks, newest };
        for (number, part) in &files {
            match part {
                Part::NewIndex => archive.place.remove(*number, *part),
                Part::Index => archive.take_up(*number),
                Part::Pages => (),
            }
        }
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

    fn take_up(&mut self, number: u64) {
        let index = self.place.open(number, Part::Index, false).ok().and_then(|file| Index::decode(number, file).ok());
        match (index, listed(&self.place, number)) {
            (Some(index), Some(kept)) => {
                self.count(&index.pieces);
                self.kept.push(kept);
            }
            // Whoever wants it would only be told that it is damaged.
            _ => self.place.remove(number, Part::Index),
        }
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
            Ok((pages, pieces)) => {
                self.next += 1;
                self.newest = pages;
                self.count(&pieces);
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
    ) -> Result<(Pages, Vec<Piece>), ArchiveError> {
        let file = self.place.create(number, Part::Pages)?;
        let most = self.policy.budget;
        let mut output = Output { place: &self.place, file, number, end: 0, most, looked: 0 };
        let Copied { seq, pages, objects } = copy(store, writer, known, &mut output)?;
        // Once it is read: nobody who asks for the state at a time gets a later one.
        let time_us = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64);
        let index = Index { number, time_us, seq, pieces: pages.pieces(), objects };
        let mut file = self.place.create(number, Part::NewIndex)?;
        file.write_all(&index.encode()?)?;
        self.place.promote(number)?;
        Ok((pages, index.pieces))
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
        let index = self.place.open(number, Part::Index, false).ok().and_then(|file| Index::decode(number, file).ok());
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
    /// `Missing`, `Damaged`, `Newer`.
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
