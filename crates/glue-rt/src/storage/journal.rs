//! What entries said before the last change.
//!
//! sequence u64 (0: nothing to undo), place u64, count u64; then for each the entry's number u64 and the entry.

use std::io;

use super::{entry, set_word, word, Medium, ENTRIES, ENTRY, JOURNAL};

/// Entries that one call can change.
pub const MOST: usize = 8;
const RECORD: usize = 8 + ENTRY;

/// Before entries are changed by the call `sequence` made at `place`.
pub fn begin(medium: &impl Medium, sequence: u64, place: u64, before: &[(usize, [u8; ENTRY])]) -> io::Result<()> {
    assert!(before.len() <= MOST && sequence != 0);
    // The sequence last: only then the rest is true.
    set_word(medium, JOURNAL, 0)?;
    let mut bytes = Vec::with_capacity(16 + before.len() * RECORD);
    bytes.extend(place.to_le_bytes());
    bytes.extend((before.len() as u64).to_le_bytes());
    for (number, entry) in before {
        bytes.extend((*number as u64).to_le_bytes());
        bytes.extend(entry);
    }
    medium.write(JOURNAL + 8, &bytes)?;
    set_word(medium, JOURNAL, sequence)
}

/// The writer is dead: puts back what its last change changed if the call has not happened, and forgets the change. Done
/// again it does the same, until the next writer begins.
pub fn decide(medium: &impl Medium, unpublished: impl FnOnce(u64, u64) -> bool) -> io::Result<()> {
    let sequence = word(medium, JOURNAL)?;
    if sequence == 0 {
        return Ok(());
    }
    if unpublished(sequence, word(medium, JOURNAL + 8)?) {
        put_back(medium)?;
    }
    set_word(medium, JOURNAL, 0)
}

fn put_back(medium: &impl Medium) -> io::Result<()> {
    // Written by one that died, perhaps for having gone mad: nothing of it is believed.
    let count = word(medium, JOURNAL + 16)?.min(MOST as u64);
    for record in (0..count).map(|at| JOURNAL + 24 + at * RECORD as u64) {
        let mut before = [0; ENTRY];
        medium.read(record + 8, &mut before)?;
        if let Some(number) = usize::try_from(word(medium, record)?).ok().filter(|number| *number < ENTRIES) {
            medium.write(entry::place(number), &before)?;
        }
    }
    Ok(())
}
