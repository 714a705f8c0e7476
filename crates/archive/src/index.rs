//! The index of a generation: which page is in which block, and all objects.

use crate::block::{Spot, MOST};
use crate::error::ArchiveError;
use crate::seal::{Seal, ID};
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};
use outlast_store::{crc32c, Cpu, PAGE};
use serde::Serialize;
use std::io::Read;

const MAGIC: u64 = u64::from_le_bytes(*b"OUTLASTg");
const PLAIN: u32 = 1;
/// The body is sealed.
const SEALED: u32 = 2;
/// Pages that a store can hold.
const PAGES_MAX: u64 = 1 << 26;
/// Pieces of an index at most.
const PIECES_MAX: u64 = 1 << 23;
/// Files of blocks that an index names at most.
const FILES_MAX: u64 = 1 << 20;
/// Bytes of all objects at most: what a store has room for.
const OBJECTS_MAX: u64 = 64 << 20;
/// Bytes of a body at most: more than what all of this can take.
const BODY_MAX: u64 = 1 << 30;
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
    pub encrypted: bool,
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
    /// Bytes of the body, as it lies in the file.
    body: u64,
    body_crc: u32,
    crc: u32,
}

/// What comes after the head of a sealed index.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct SealHead {
    /// Which archive it is of, and which key it needs.
    archive: [u8; ID],
    check: [u8; ID],
    /// How many files of blocks it names.
    files: u64,
    reserved: u32,
    crc: u32,
}

/// A file of sealed blocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct FileId {
    /// The generation whose file it is.
    pub file: u64,
    pub id: [u8; ID],
}

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
    /// Ids of the files that the pieces name; none if they are not sealed.
    pub files: Vec<FileId>,
    pub objects: Vec<Object>,
}

/// The last four bytes of both heads are this, over what is before.
fn checksum(head: &impl Pod) -> u32 {
    let bytes = bytes_of(head);
    crc32c(Cpu::detect(), 0, &bytes[..bytes.len() - 4])
}

fn read_head(number: u64, file: &mut impl Read) -> Result<Head, ArchiveError> {
    let mut head = Head::zeroed();
    file.read_exact(bytes_of_mut(&mut head)).map_err(|_| ArchiveError::Damaged(number))?;
    if head.magic == MAGIC && head.version > SEALED {
        return Err(ArchiveError::Newer(number));
    }
    let possible = head.magic == MAGIC
        && matches!(head.version, PLAIN | SEALED)
        && head.crc == checksum(&head)
        && head.number == number
        && head.seq < SEQ_END
        && head.pieces <= PIECES_MAX
        && head.pages <= PAGES_MAX
        && head.objects <= OBJECTS_MAX
        && head.body <= BODY_MAX;
    if possible {
        Ok(head)
    } else {
        Err(ArchiveError::Damaged(number))
    }
}

impl Head {
    /// Everything that the heads of a sealed index say, but for what tells of the sealed bytes themselves.
    fn bound(&self, second: &SealHead) -> Vec<u8> {
        let head = Head { body: 0, body_crc: 0, crc: 0, ..*self };
        [&b"index"[..], bytes_of(&head), bytes_of(second)].concat()
    }
}

impl Kept {
    /// What the head of an index tells; `bytes` is not known from there.
    pub(crate) fn read(number: u64, file: &mut impl Read) -> Result<Kept, ArchiveError> {
        let Head { time_us, seq, pages, version, .. } = read_head(number, file)?;
        Ok(Kept { number, time_us, seq, pages, bytes: 0, encrypted: version == SEALED })
    }
}

impl Index {
    pub fn pages(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.count)).sum()
    }

    /// As it lies in a file.
    pub fn encode(&self, seal: Option<&Seal>) -> Result<Vec<u8>, ArchiveError> {
        let mut body: Vec<u8> = bytemuck::cast_slice(&self.pieces).to_vec();
        body.extend(bytemuck::cast_slice::<_, u8>(&self.files));
        let before = body.len();
        for Object { kind, key, bytes } in &self.objects {
            body.extend(bytes_of(&Stored { kind: *kind, reserved: 0, len: bytes.len() as u32, key: *key }));
            body.extend(bytes);
        }
        let objects = (body.len() - before) as u64;
        if self.pieces.len() as u64 > PIECES_MAX || objects > OBJECTS_MAX || self.files.len() as u64 > FILES_MAX {
            return Err(ArchiveError::OverBudget);
        }
        let mut body = zstd::bulk::compress(&body, 1)?;
        let mut head = Head {
            magic: MAGIC,
            version: if seal.is_some() { SEALED } else { PLAIN },
            number: self.number,
            time_us: self.time_us,
            seq: self.seq,
            pages: self.pages(),
            pieces: self.pieces.len() as u64,
            objects,
            ..Head::zeroed()
        };
        let mut second = Vec::new();
        if let Some(seal) = seal {
            let mut seal_head = SealHead {
                archive: seal.archive(),
                check: seal.check(),
                files: self.files.len() as u64,
                ..SealHead::zeroed()
            };
            seal_head.crc = checksum(&seal_head);
            second = bytes_of(&seal_head).to_vec();
            body = seal.close(&head.bound(&seal_head), Vec::new(), &body)?;
        }
        head.body = body.len() as u64;
        head.body_crc = crc32c(Cpu::detect(), 0, &body);
        head.crc = checksum(&head);
        Ok([bytes_of(&head), &second, &body].concat())
    }

    /// # Errors
    /// `Damaged`, `Newer`, and those about keys.
    pub fn decode(number: u64, mut file: impl Read, seal: Option<&Seal>) -> Result<Index, ArchiveError> {
        let head = read_head(number, &mut file)?;
        let damaged = ArchiveError::Damaged(number);
        let (seal, files) = match (head.version == SEALED, seal) {
            (false, None) => (None, 0),
            (false, Some(_)) => return Err(ArchiveError::Plain(number)),
            (true, seal) => {
                let mut second = SealHead::zeroed();
                file.read_exact(bytes_of_mut(&mut second)).map_err(|_| damaged)?;
                if second.crc != checksum(&second) || second.files > FILES_MAX {
                    return Err(damaged);
                }
                let seal = seal.ok_or(ArchiveError::KeyNeeded(number))?;
                if second.archive != seal.archive() {
                    return Err(ArchiveError::Foreign(number));
                }
                if second.check != seal.check() {
                    return Err(ArchiveError::WrongKey(number));
                }
                (Some((seal, second)), second.files)
            }
        };
        let index = read_body(&head, file).and_then(|mut body| match seal {
            Some((seal, second)) => Self::decode_body(head, files, seal.open(&head.bound(&second), &mut body)?),
            None => Self::decode_body(head, files, &body),
        });
        index.ok_or(damaged)
    }

    fn decode_body(head: Head, files: u64, body: &[u8]) -> Option<Index> {
        let (pieces_len, files_len) = (head.pieces as usize * size_of::<Piece>(), files as usize * size_of::<FileId>());
        let raw = pieces_len + files_len + head.objects as usize;
        let body = zstd::bulk::decompress(body, raw).ok().filter(|body| body.len() == raw)?;
        let (pieces, rest) = body.split_at(pieces_len);
        let (files, mut rest) = rest.split_at(files_len);
        let pieces: Vec<Piece> = pieces.chunks_exact(size_of::<Piece>()).map(bytemuck::pod_read_unaligned).collect();
        let files = files.chunks_exact(size_of::<FileId>()).map(bytemuck::pod_read_unaligned).collect();
        let mut objects: Vec<Object> = Vec::new();
        while !rest.is_empty() {
            let (front, after) = rest.split_at_checked(size_of::<Stored>())?;
            let stored: Stored = bytemuck::pod_read_unaligned(front);
            let (bytes, after) = after.split_at_checked(stored.len as usize)?;
            objects.push(Object { kind: stored.kind, key: stored.key, bytes: bytes.to_vec() });
            rest = after;
        }
        let index = Index { number: head.number, time_us: head.time_us, seq: head.seq, pieces, files, objects };
        // Only where each is possible has it an end.
        let possible = index.pieces.iter().all(|piece| piece.is_possible(head.number))
            && index.pieces.windows(2).all(|pair| pair[0].end() <= pair[1].addr);
        (possible && index.pages() == head.pages).then_some(index)
    }
}

fn read_body(head: &Head, file: impl Read) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    file.take(head.body).read_to_end(&mut body).ok()?;
    let whole = body.len() as u64 == head.body && head.body_crc == crc32c(Cpu::detect(), 0, &body);
    whole.then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by `fuzz/fuzz_targets/archive_read.rs`.
    #[test]
    fn a_piece_at_the_end_of_all_numbers_is_damage() {
        for addr in [u64::MAX - PAGE + 1, ADDRESS_END, ADDRESS_END - PAGE, 1] {
            let piece = Piece { addr, file: 1, off: 0, len: 100, count: 2, first: 0 };
            let pieces = vec![piece, Piece { addr: 0x5000, ..piece }];
            let index = Index { number: 1, time_us: 0, seq: 0, pieces, files: Vec::new(), objects: Vec::new() };
            let bytes = index.encode(None).unwrap();
            assert_eq!(Index::decode(1, &bytes[..], None), Err(ArchiveError::Damaged(1)), "{addr:x}");
        }
    }
}
