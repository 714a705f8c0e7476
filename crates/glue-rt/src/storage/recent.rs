//! What the last calls changed of entries, until it stands in the table: so that a change costs no call to the kernel.
//!
//! Lies in memory that the instance has mapped, as the replies to those calls do, and has its check values, as the table has. It is
//! written to the table when there is no more room, and when the instance has died: all but what belongs to a call whose reply was
//! not published, which has not happened.
//!
//! ```text
//!   applied u64: what was changed up to that sequence stands in the table │ records
//!   record: check u32, length u32 │ sequence u64, place u64, then for each entry its number u32, its length u32, and the entry
//! ```

use std::io;
use std::sync::Arc;

use super::{entry, set_word, word, Medium, ENTRIES, ENTRY, USED};
use crate::memory::{Bytes, Shared};

/// Entries that one call can change.
pub const MOST: usize = 8;
/// Calls that fit.
pub const RECORDS: usize = 64;

const APPLIED: u64 = 0;
const FIRST: u64 = 64;
const HEAD: usize = 8;
const RECORD: usize = 4224;
const _: () = assert!(HEAD + 16 + MOST * (8 + ENTRY) <= RECORD);

/// As it lies in memory.
pub type Area = Bytes<{ FIRST as usize + RECORDS * RECORD }>;

impl Medium for Arc<Shared<Area>> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self.read_into(at as usize, bytes) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self.write_at(at as usize, bytes) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A call's changes.
struct Record {
    sequence: u64,
    place: u64,
    /// Numbers of entries, and what they are now.
    entries: Vec<(usize, Vec<u8>)>,
}

/// Where it lies.
pub fn at(record: usize) -> u64 {
    FIRST + (record * RECORD) as u64
}

/// Puts down what the call `sequence` made at `place` changed, as the `record`th since the table was written.
pub fn put<'a>(
    area: &impl Medium,
    record: usize,
    sequence: u64,
    place: u64,
    entries: impl Iterator<Item = (usize, Option<&'a entry::Entry>)>,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    bytes.clear();
    bytes.extend([0; HEAD]);
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(place.to_le_bytes());
    for (number, entry) in entries {
        let start = bytes.len();
        bytes.extend([0; 8]);
        entry::encode(entry, bytes);
        let length = (bytes.len() - start - 8) as u32;
        bytes[start..start + 4].copy_from_slice(&(number as u32).to_le_bytes());
        bytes[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    }
    let length = (bytes.len() - HEAD) as u32;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    let check = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    area.write(at(record), bytes)
}

/// None where that is not what was written.
fn get(area: &impl Medium, record: usize, head: [u8; HEAD]) -> io::Result<Option<Record>> {
    let [_, _, _, _, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if length > RECORD - HEAD {
        return Ok(None);
    }
    let mut bytes = head.to_vec();
    bytes.resize(HEAD + length, 0);
    area.read(at(record) + HEAD as u64, &mut bytes[HEAD..])?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Option<Record> {
    let half = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let whole = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let end = HEAD.checked_add(half(4)? as usize)?;
    if crc32fast::hash(bytes.get(4..end)?) != half(0)? {
        return None;
    }
    let mut record = Record { sequence: whole(HEAD)?, place: whole(HEAD + 8)?, entries: Vec::new() };
    let mut from = HEAD + 16;
    while from < end {
        let (number, length) = (half(from)? as usize, half(from + 4)? as usize);
        let entry = bytes.get(from + 8..from + 8 + length)?;
        if number >= ENTRIES || length > ENTRY || from + 8 + length > end {
            return None;
        }
        record.entries.push((number, entry.to_vec()));
        from += 8 + length;
    }
    Some(record)
}

/// Writes to the table what was put down, but for the last call's if it is `unpublished`. Interrupted, it is done again; done again,
/// it does nothing. The writer, if another, is dead.
pub fn apply(table: &impl Medium, area: &impl Medium, unpublished: impl FnOnce(u64, u64) -> bool) -> io::Result<()> {
    let applied = word(area, APPLIED)?;
    let mut records = Vec::new();
    for number in 0..RECORDS {
        let mut head = [0; HEAD];
        area.read(at(number), &mut head)?;
        if head == [0; HEAD] {
            // None was ever put there, nor behind it: that memory is not even taken yet.
            break;
        }
        // One that is not what was written belongs to a call that wrote no reply any more.
        records.extend(get(area, number, head)?.filter(|record| record.sequence > applied));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.sequence));
    let Some(last) = records.first() else { return Ok(()) };
    let sequence = last.sequence;
    if unpublished(sequence, last.place) {
        records.remove(0);
    }
    let mut written = Vec::new();
    for (number, mut form) in records.into_iter().flat_map(|record| record.entries) {
        // The latest first.
        if !written.contains(&number) {
            entry::seal(&mut form);
            table.write(entry::place(number), &form)?;
            written.push(number);
        }
    }
    finish(table, area, &written, sequence)
}

/// The table has these entries, and so all that was put down up to that sequence.
pub fn finish(table: &impl Medium, area: &impl Medium, written: &[usize], sequence: u64) -> io::Result<()> {
    if let Some(highest) = written.iter().max().map(|highest| *highest as u64 + 1) {
        if highest > word(table, USED)? {
            set_word(table, USED, highest)?;
        }
    }
    set_word(area, APPLIED, sequence)
}
