//! The undo journal: what the kernel's state must be set back to, as noted since the last commit.
//!
//! An entry counts while the last commit is the one it names; so a commit empties the journal without touching it.

use crate::areas::JOURNAL_RUN;
use crate::crc::crc32c;
use crate::error::{Area, StoreError};
use crate::region::Region;
use crate::store::Store;
use crate::word::{seal, unseal};
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};

/// Bytes of an entry at most; longer before-images are several entries.
pub const ENTRY_MAX: usize = 64 << 10;
/// Entries since the last commit at most.
pub const ENTRIES_MAX: u32 = (1 << 17) - 1;

/// Where the journal ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Journal {
    /// Bytes of entries since the last commit.
    pub used: u64,
    /// How many entries these are.
    pub count: u32,
    /// How often it was emptied by hand.
    pub run: u64,
}

impl Journal {
    /// Nothing noted so far counts, nor will it after commits to come that have the numbers of others that were lost.
    pub(crate) fn forget(&mut self) {
        *self = Journal { used: 0, count: 0, run: self.run + 1 };
    }
}

/// Header of an entry; its bytes follow, padded to 8.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Stored {
    /// The commit it follows.
    tag: u64,
    /// Excludes what was written before the journal was emptied by hand.
    run: u64,
    len: u32,
    /// Over the bytes, then over the header without this field.
    crc: u32,
    kind: u16,
    magic: u16,
    reserved: u32,
}

/// Keeps zeroed memory from looking like an entry.
const ENTRY_MAGIC: u16 = u16::from_le_bytes(*b"jE");

const STORED: u64 = core::mem::size_of::<Stored>() as u64;

impl<R: Region> Store<'_, R> {
    /// Notes what to undo if the process dies before the next commit. In a durable store that does not lag it is on the medium then.
    ///
    /// # Errors
    /// `NoRoom`, also for more than [`ENTRY_MAX`] bytes or the [`ENTRIES_MAX`]th entry; `Sync`, `ReadOnly`.
    pub fn journal_append(&mut self, kind: u16, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        let area = self.superblock.areas.journal;
        let len = STORED + (bytes.len() as u64).next_multiple_of(8);
        let has_room = self.journal.count < ENTRIES_MAX && area.len - self.journal.used >= len;
        if bytes.len() > ENTRY_MAX || !has_room {
            return Err(StoreError::NoRoom(Area::Journal));
        }
        let at = area.off + self.journal.used;
        let mut stored = Stored {
            tag: self.seq,
            run: self.journal.run,
            len: bytes.len() as u32,
            crc: 0,
            kind,
            magic: ENTRY_MAGIC,
            reserved: 0,
        };
        stored.crc = crc32c(self.cpu, crc32c(self.cpu, self.seed, bytes), bytes_of(&stored));
        self.region.write(at + STORED, bytes);
        self.region.write(at, bytes_of(&stored));
        self.region.barrier();
        // Where commits lag, nobody reads it after a power loss.
        if self.superblock.params.durable && !self.superblock.params.lags {
            self.region.sync_pages_of(at, len)?;
        }
        self.journal.used += len;
        self.journal.count += 1;
        Ok(())
    }

    /// How many entries there are.
    pub fn journal_count(&self) -> u32 {
        self.journal.count
    }

    /// Where the next entry will lie: what [`Store::journal_read`] takes.
    pub fn journal_end(&self) -> u64 {
        self.journal.used
    }

    /// Calls `f(at, kind, bytes)` for every entry, oldest first. After [`Store::open`]: what must be undone, and was
    /// perhaps undone before, by a recovery that failed.
    pub fn journal_for_each(&mut self, f: &mut dyn FnMut(u64, u16, &[u8])) {
        let mut at = 0;
        while let Some((kind, len, next)) = self.journal_live(at) {
            f(at, kind, &self.buffer[..len]);
            at = next;
        }
    }

    /// The entry at `at`: its kind, its bytes, and where the one after it lies.
    pub fn journal_read(&mut self, at: u64) -> Option<(u16, &[u8], u64)> {
        let (kind, len, next) = self.journal_live(at)?;
        Some((kind, &self.buffer[..len], next))
    }

    /// Calls `f(kind, bytes)` for every entry that the last commit has made void, as long as there is no new one.
    pub fn journal_of_previous(&mut self, f: &mut dyn FnMut(u16, &[u8])) {
        let (mut at, Some(tag)) = (0, self.seq.checked_sub(1)) else { return };
        while let Some((kind, len, next)) = self.journal_entry(at, tag) {
            f(kind, &self.buffer[..len]);
            at = next;
        }
    }

    /// An entry since the last commit.
    fn journal_live(&mut self, at: u64) -> Option<(u16, usize, u64)> {
        self.journal_entry(at, self.seq).filter(|(_, _, next)| *next <= self.journal.used)
    }

    /// Empties the journal: everything in it was undone.
    ///
    /// # Errors
    /// `Sync`, `ReadOnly`.
    pub fn journal_clear(&mut self) -> Result<(), StoreError> {
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        let run = self.journal.run + 1;
        self.region.publish(JOURNAL_RUN, seal(run));
        if self.superblock.params.durable {
            self.region.sync_pages_of(JOURNAL_RUN, 8)?;
        }
        self.journal = Journal { used: 0, count: 0, run };
        Ok(())
    }

    /// Finds out where the journal of the current state ends. A damaged word empties it; the answer is false then.
    pub(crate) fn load_journal(&mut self) -> bool {
        let run = unseal(self.region.load(JOURNAL_RUN));
        // Epochs are not used again, and nobody empties a journal 2^40 times.
        self.journal = Journal { used: 0, count: 0, run: run.unwrap_or((self.head.epoch % (1 << 40)) + (1 << 40)) };
        while let Some((_, _, next)) = self.journal_entry(self.journal.used, self.seq) {
            self.journal.used = next;
            self.journal.count += 1;
        }
        run.is_some()
    }

    /// Reads the entry at `at`, noted after commit `tag`, into the buffer: kind, length, start of the next one.
    fn journal_entry(&mut self, at: u64, tag: u64) -> Option<(u16, usize, u64)> {
        let area = self.superblock.areas.journal;
        let room = area.len.checked_sub(at)?.checked_sub(STORED)?;
        let mut stored = Stored::zeroed();
        self.region.read(area.off + at, bytes_of_mut(&mut stored));
        let len = stored.len as usize;
        let fits = len <= ENTRY_MAX && (len as u64).next_multiple_of(8) <= room;
        let ours = stored.magic == ENTRY_MAGIC && stored.tag == tag && stored.run == self.journal.run;
        if !ours || !fits {
            return None;
        }
        let bytes = &mut self.buffer[..len];
        self.region.read(area.off + at + STORED, bytes);
        let crc = crc32c(self.cpu, self.seed, bytes);
        let crc = crc32c(self.cpu, crc, bytes_of(&Stored { crc: 0, ..stored }));
        (crc == stored.crc).then_some((stored.kind, len, at + STORED + (len as u64).next_multiple_of(8)))
    }
}
