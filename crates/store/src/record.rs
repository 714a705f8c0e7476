//! Commit records: a header of 64 bytes, then entries.
//!
//! An entry begins with a [`Tag`] of 16 bytes; its length is a multiple of 8.
//!
//! | kind | `detail` | `count` | `word` | follows |
//! |---|---|---|---|---|
//! | `NEW_CHUNK` | 0 | chunk index | address of the chunk | – |
//! | `NEW_PAGE` | 0 | chunk index | address of the page | – (its content is in its frame) |
//! | `PAGE` | 0 | chunk index | address of the page | 4096 bytes |
//! | `LINES` | 0 | chunk index | address of the page | mask (u64), 64 bytes for each set bit |
//! | `DROP` | 0 | 0 | start address | end address (u64) |
//! | `PUT` | object kind | bytes | object key | the bytes, padded to 8 |
//! | `DELETE` | object kind | 0 | object key | – |

use crate::areas::{ADDRESS_END, CHUNK, PAGE};
use crate::region::Region;
use bytemuck::{bytes_of_mut, Pod, Zeroable};

/// First word of a record.
pub const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"oREC");

/// Header of a record; records begin at multiples of 64. The sequence number is last, so that a header cut short is not
/// taken for the next one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Header {
    pub magic: u32,
    /// Over the entries, then over the header with 0 here; seeded by the store's id.
    pub crc: u32,
    /// Bytes of entries.
    pub len: u64,
    /// The commit group's sequence number.
    pub group_seq: u64,
    /// Bits of [`flag`].
    pub flags: u64,
    pub reserved: [u64; 2],
    /// Epoch of the head it builds on.
    pub epoch: u64,
    pub seq: u64,
}

/// Bits of [`Header::flags`].
pub mod flag {
    /// In a store that lags: was on the medium before it was acknowledged, with all before it.
    pub const SETTLES: u64 = 1;
}

pub const HEADER: u64 = 64;
const _: () = assert!(core::mem::size_of::<Header>() as u64 == HEADER);

/// Kinds of entries.
pub mod kind {
    pub const NEW_CHUNK: u16 = 1;
    pub const NEW_PAGE: u16 = 2;
    pub const PAGE: u16 = 3;
    pub const LINES: u16 = 4;
    pub const DROP: u16 = 5;
    pub const PUT: u16 = 6;
    pub const DELETE: u16 = 7;
}

/// Start of an entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Tag {
    pub kind: u16,
    pub detail: u16,
    pub count: u32,
    pub word: u64,
}

pub const TAG: u64 = 16;

/// An entry with every field checked on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    NewChunk {
        chunk: u64,
        index: u32,
    },
    NewPage {
        addr: u64,
        index: u32,
    },
    /// `at` is the region offset of the 4096 bytes.
    Page {
        addr: u64,
        index: u32,
        at: u64,
    },
    /// `at` is the region offset of the first line.
    Lines {
        addr: u64,
        index: u32,
        mask: u64,
        at: u64,
    },
    Drop {
        start: u64,
        end: u64,
    },
    /// `at` is the region offset of the bytes.
    Put {
        kind: u16,
        key: u64,
        at: u64,
        len: u32,
    },
    Delete {
        kind: u16,
        key: u64,
    },
}

/// Whether `addr` is that of a page.
#[inline]
pub fn is_page(addr: u64) -> bool {
    addr % PAGE == 0 && addr < ADDRESS_END
}

/// Reads the entry at `off`, which must end at or before `end`; gives it and where the next one begins.
pub fn read_entry<R: Region>(region: &R, off: u64, end: u64) -> Option<(Entry, u64)> {
    let room = end.checked_sub(off)?;
    if room < TAG {
        return None;
    }
    let mut tag = Tag::zeroed();
    region.read(off, bytes_of_mut(&mut tag));
    let at = off + TAG;
    let second = || {
        let mut word = 0u64;
        region.read(at, bytes_of_mut(&mut word));
        word
    };
    let Tag { kind, detail, count, word } = tag;
    let of_page = is_page(word) && detail == 0;
    let (entry, len) = match kind {
        kind::NEW_CHUNK if of_page && word % CHUNK == 0 => (Entry::NewChunk { chunk: word, index: count }, 0),
        kind::NEW_PAGE if of_page => (Entry::NewPage { addr: word, index: count }, 0),
        kind::PAGE if of_page => (Entry::Page { addr: word, index: count, at }, PAGE),
        kind::LINES if of_page && room >= TAG + 8 => {
            let mask = second();
            (Entry::Lines { addr: word, index: count, mask, at: at + 8 }, 8 + 64 * mask.count_ones() as u64)
        }
        kind::DROP if of_page && count == 0 && room >= TAG + 8 => {
            let end = second();
            let sound = end % PAGE == 0 && word <= end && end <= ADDRESS_END;
            (sound.then_some(Entry::Drop { start: word, end })?, 8)
        }
        kind::PUT => (Entry::Put { kind: detail, key: word, at, len: count }, (count as u64).next_multiple_of(8)),
        kind::DELETE if count == 0 => (Entry::Delete { kind: detail, key: word }, 0),
        _ => return None,
    };
    (TAG + len <= room).then_some((entry, at + len))
}
