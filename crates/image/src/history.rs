//! What a program has read and sent lately, in its session: what it meets again when it goes back to an older generation.
//!
//! A ring of records, each padded to eight bytes. Positions count all bytes that were ever appended. A record that does not fit before the
//! end of the room begins at its start, and what is left before the end is one of [`kind::NOTHING`], of which the first eight bytes may
//! be all there is. What could not be kept makes all before it void: [`History::begin`] is then where it ends.

use bytemuck::{Pod, Zeroable};
use core::sync::atomic::AtomicU64;

/// Bytes of records.
pub const LEN: u64 = (4 << 20) - crate::layout::PAGE;
/// More bytes of one are not kept.
pub const MOST: u64 = 256 << 10;

/// The first page; records follow on the next.
#[repr(C)]
pub struct History {
    /// Engine: where the oldest record begins that is still whole.
    pub begin: AtomicU64,
    /// Engine: where the next one will begin.
    pub end: AtomicU64,
    /// Engine: the commit before the last output that stands here.
    pub noted: AtomicU64,
    /// Supervisor: which time it is that the program is to meet records again, those from one position up to another; 0: none.
    pub number: AtomicU64,
    pub from: AtomicU64,
    pub until: AtomicU64,
}

/// Kinds of records.
pub mod kind {
    /// Nobody wrote it.
    pub const VOID: u32 = 0;
    /// Skipped.
    pub const NOTHING: u32 = 1;
    /// What a read took; its bytes follow.
    pub const INPUT: u32 = 2;
    /// What was sent; its bytes follow.
    pub const OUTPUT: u32 = 3;
}

/// Head of a record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Record {
    /// One of [`kind`].
    pub kind: u32,
    /// Bytes that follow the head; of [`kind::NOTHING`] all bytes of it but the first eight.
    pub len: u32,
    /// The last commit before it.
    pub seq: u64,
    /// Where it came from or went to: the engine's number for an open file.
    pub source: u64,
    pub fd: i32,
    /// What the call returned.
    pub result: i32,
}

/// Bytes of it.
pub const HEAD: u64 = core::mem::size_of::<Record>() as u64;

impl Record {
    /// What it takes in the ring.
    pub fn room(&self) -> u64 {
        match self.kind {
            kind::NOTHING => 8 + u64::from(self.len),
            _ => HEAD + u64::from(self.len).next_multiple_of(8),
        }
    }
}

/// Whether a record of so many bytes fits at a position, and how many bytes are to be skipped for it otherwise.
pub fn skipped(at: u64, room: u64) -> u64 {
    let left = LEN - at % LEN;
    if room <= left {
        0
    } else {
        left
    }
}

/// The record at a position of a ring; `None`: what is there is none, or goes beyond `until`.
pub fn record(ring: &[u8], at: u64, until: u64) -> Option<Record> {
    let place = (at % LEN) as usize;
    let left = ring.get(place..)?;
    let short: [u32; 2] = bytemuck::pod_read_unaligned(left.get(..8)?);
    let record = match short {
        [kind::NOTHING, len] => Record { kind: kind::NOTHING, len, ..Record::default() },
        [kind::INPUT | kind::OUTPUT, _] => bytemuck::pod_read_unaligned(left.get(..HEAD as usize)?),
        _ => return None,
    };
    let is_whole = record.room() <= left.len() as u64 && at.checked_add(record.room())? <= until;
    (is_whole && at % 8 == 0).then_some(record)
}

/// The bytes of that record.
pub fn bytes<'r>(ring: &'r [u8], at: u64, record: &Record) -> Option<&'r [u8]> {
    let from = (at % LEN + HEAD) as usize;
    ring.get(from..from + record.len as usize)
}
