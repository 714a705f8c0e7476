//! What is known of a resource: its place in the table and its form there.

use super::{Medium, ENTRIES, ENTRY, TABLE};

/// Each root leads to an index, each index to 512 blocks of data.
pub const ROOTS: usize = 16;
/// Bytes before the roots.
const NONE: usize = 24;
const NAMES: usize = NONE + ROOTS * 8;
/// Bytes of a resource's name.
pub const NAME: usize = ENTRY - NAMES;

/// A block and the check value of what is in it. Block 0: none, all bytes are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    pub block: u32,
    pub check: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: u64,
    pub length: u64,
    pub roots: [Pointer; ROOTS],
    /// Whatever the service wants to know of the resource.
    pub name: Vec<u8>,
}

/// Not what was written.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

impl Pointer {
    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.block) | u64::from(self.check) << 32).to_le_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        Self { block: word as u32, check: (word >> 32) as u32 }
    }
}

/// Where the entry with that number lies.
pub fn place(number: usize) -> u64 {
    assert!(number < ENTRIES);
    TABLE + (number * ENTRY) as u64
}

/// Adds its form: check u32, length of the name u32, key u64, length u64, roots, name; 24 zeros where there is none. What follows
/// in the table means nothing. The check is left to be `sealed`.
pub fn encode(entry: Option<&Entry>, bytes: &mut Vec<u8>) {
    let Some(entry) = entry else { return bytes.extend_from_slice(&[0; NONE]) };
    let mut head = [0; NAMES];
    head[4..8].copy_from_slice(&(entry.name.len() as u32).to_le_bytes());
    head[8..16].copy_from_slice(&entry.key.to_le_bytes());
    head[16..24].copy_from_slice(&entry.length.to_le_bytes());
    for (form, root) in head[NONE..].chunks_exact_mut(8).zip(entry.roots) {
        form.copy_from_slice(&root.to_bytes());
    }
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(&entry.name);
}

/// Gives an encoded entry its check value.
pub fn seal(form: &mut [u8]) {
    if form.len() > NONE {
        let check = crc32fast::hash(&form[4..]);
        form[..4].copy_from_slice(&check.to_le_bytes());
    }
}

pub fn decode(bytes: &[u8; ENTRY]) -> Result<Option<Entry>, Damaged> {
    if bytes[..NONE].iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let whole = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    let length = half(4) as usize;
    if length > NAME || crc32fast::hash(&bytes[4..NAMES + length]) != half(0) {
        return Err(Damaged);
    }
    Ok(Some(Entry {
        key: whole(8),
        length: whole(16),
        roots: std::array::from_fn(|at| Pointer::from_bytes(&bytes[24 + at * 8..32 + at * 8])),
        name: bytes[NAMES..NAMES + length].to_vec(),
    }))
}

pub fn load(medium: &impl Medium, number: usize) -> std::io::Result<[u8; ENTRY]> {
    let mut bytes = [0; ENTRY];
    medium.read(place(number), &mut bytes)?;
    Ok(bytes)
}
