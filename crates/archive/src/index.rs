//! The index of a generation: which page is in which block, and all objects.

use crate::block::{Spot, MOST};
use crate::error::ArchiveError;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};
use outlast_store::{crc32c, Cpu, PAGE};
use serde::Serialize;
use std::io::Read;

const MAGIC: u64 = u64::from_le_bytes(*b"OUTLASTg");
const VERSION: u32 = 1;
/// Pages that a store can hold.
const PAGES_MAX: u64 = 1 << 26;
/// Pieces of an index at most.
const PIECES_MAX: u64 = 1 << 23;
/// Bytes of all objects at most: what a store has room for.
const OBJECTS_MAX: u64 = 64 << 20;
const ADDRESS_END: u64 = 1 << 57;
const SEQ_END: u64 = 1 << 47;

/// A generation, as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// One more than that of the generation before.
    pub number: u64,
    /// When the program was in this state. Microseconds since 1970.
    pub time_us: u64,
    /// The commit.
    pub seq: u64,
    /// Pages of memory.
    pub pages: u64,
    /// Bytes that its files take.
    pub bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct Head {
    magic: u64,
    version: u32,
    reserved: u32,
    number: u64,
    time_us: u64,
    seq: u64,
    pages: u64,
    pieces: u64,
    /// Bytes of the objects.
    objects: u64,
    /// Bytes of the body, compressed.
    body: u64,
    body_crc: u32,
    crc: u32,
}

const HEAD: usize = size_of::<Head>();

/// Pages in a row that lie in a row in one block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Piece {
    /// Address of the first page.
    pub addr: u64,
    /// The generation in whose file the block is.
    pub file: u64,
    pub off: u64,
    /// Bytes of the block.
    pub len: u32,
    /// How many pages.
    pub count: u16,
    /// Where in the block they begin, in pages.
    pub first: u16,
}

impl Piece {
    pub fn spot(&self) -> Spot {
        Spot { file: self.file, off: self.off }
    }

    pub fn end(&self) -> u64 {
        self.addr + u64::from(self.count) * PAGE
    }

    fn is_possible(&self, number: u64) -> bool {
        let pages = self.count as usize + self.first as usize;
        self.addr % PAGE == 0
            && self.addr < ADDRESS_END
            && self.end() <= ADDRESS_END
            && self.count > 0
            && pages <= MOST
            && self.file <= number
            && self.off < 1 << 60
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Stored {
    kind: u16,
    reserved: u16,
    len: u32,
    key: u64,
}

/// Named bytes beside the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: u16,
    pub key: u64,
    pub bytes: Vec<u8>,
}

/// The whole index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub number: u64,
    pub time_us: u64,
    pub seq: u64,
    /// Ascending, apart from each other.
    pub pieces: Vec<Piece>,
    pub objects: Vec<Object>,
}

fn head_checksum(head: &Head) -> u32 {
    crc32c(Cpu::detect(), 0, &bytes_of(head)[..HEAD - 4])
}

fn read_head(number: u64, file: &mut impl Read) -> Result<Head, ArchiveError> {
    let mut head = Head::zeroed();
    file.read_exact(bytes_of_mut(&mut head)).map_err(|_| ArchiveError::Damaged(number))?;
    if head.magic == MAGIC && head.version > VERSION {
        return Err(ArchiveError::Newer(number));
    }
    let possible = head.magic == MAGIC
        && head.version == VERSION
        && head.crc == head_checksum(&head)
        && head.number == number
        && head.seq < SEQ_END
        && head.pieces <= PIECES_MAX
        && head.pages <= PAGES_MAX
        && head.objects <= OBJECTS_MAX
        && head.body <= head.raw_len() + head.raw_len() / 128 + 4096;
    if possible {
        Ok(head)
    } else {
        Err(ArchiveError::Damaged(number))
    }
}

impl Head {
    fn raw_len(&self) -> u64 {
        self.pieces * size_of::<Piece>() as u64 + self.objects
    }
}

impl Kept {
    /// What the head of an index tells; `bytes` is not known from there.
    pub(crate) fn read(number: u64, file: &mut impl Read) -> Result<Kept, ArchiveError> {
        let Head { time_us, seq, pages, .. } = read_head(number, file)?;
        Ok(Kept { number, time_us, seq, pages, bytes: 0 })
    }
}

impl Index {
    pub fn pages(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.count)).sum()
    }

    /// As it lies in a file.
    pub fn encode(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut body: Vec<u8> = bytemuck::cast_slice(&self.pieces).to_vec();
        let before = body.len();
        for Object { kind, key, bytes } in &self.objects {
            body.extend(bytes_of(&Stored { kind: *kind, reserved: 0, len: bytes.len() as u32, key: *key }));
            body.extend(bytes);
        }
        let objects = (body.len() - before) as u64;
        if self.pieces.len() as u64 > PIECES_MAX || objects > OBJECTS_MAX {
            return Err(ArchiveError::OverBudget);
        }
        let body = zstd::bulk::compress(&body, 1)?;
        let mut head = Head {
            magic: MAGIC,
            version: VERSION,
            number: self.number,
            time_us: self.time_us,
            seq: self.seq,
            pages: self.pages(),
            pieces: self.pieces.len() as u64,
            objects,
            body: body.len() as u64,
            body_crc: crc32c(Cpu::detect(), 0, &body),
            ..Head::zeroed()
        };
        head.crc = head_checksum(&head);
        Ok([bytes_of(&head), &body].concat())
    }

    /// # Errors
    /// `Damaged`, `Newer`.
    pub fn decode(number: u64, mut file: impl Read) -> Result<Index, ArchiveError> {
        let head = read_head(number, &mut file)?;
        Self::decode_body(head, file).ok_or(ArchiveError::Damaged(number))
    }

    fn decode_body(head: Head, file: impl Read) -> Option<Index> {
        let mut body = Vec::new();
        file.take(head.body).read_to_end(&mut body).ok()?;
        if body.len() as u64 != head.body || head.body_crc != crc32c(Cpu::detect(), 0, &body) {
            return None;
        }
        let raw = head.raw_len() as usize;
        let body = zstd::bulk::decompress(&body, raw).ok().filter(|body| body.len() == raw)?;
        let (pieces, mut rest) = body.split_at(raw - head.objects as usize);
        let pieces: Vec<Piece> = pieces.chunks_exact(size_of::<Piece>()).map(bytemuck::pod_read_unaligned).collect();
        let apart = pieces.windows(2).all(|pair| pair[0].end() <= pair[1].addr);
        let mut objects: Vec<Object> = Vec::new();
        while !rest.is_empty() {
            let (front, after) = rest.split_at_checked(size_of::<Stored>())?;
            let stored: Stored = bytemuck::pod_read_unaligned(front);
            let (bytes, after) = after.split_at_checked(stored.len as usize)?;
            objects.push(Object { kind: stored.kind, key: stored.key, bytes: bytes.to_vec() });
            rest = after;
        }
        let index = Index { number: head.number, time_us: head.time_us, seq: head.seq, pieces, objects };
        let possible = index.pieces.iter().all(|piece| piece.is_possible(head.number)) && apart;
        (possible && index.pages() == head.pages).then_some(index)
    }
}
