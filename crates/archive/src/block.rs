//! Blocks: a few pages in a row, compressed together.

use crate::error::ArchiveError;
use crate::seal::{Seal, ADDED, ID};
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};
use outlast_store::{crc32c, Cpu, PAGE};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages in a block at most.
pub const MOST: usize = 64;
/// zstd's; higher ones take several times as long for a tenth less.
const LEVEL: i32 = 1;

/// What stands before the compressed bytes, which may be sealed.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    magic: u32,
    pages: u32,
    /// Bytes after the header.
    len: u32,
    /// Over these bytes, then over the header with 0 here.
    crc: u32,
}

const HEAD: usize = size_of::<Head>();
const MAGIC: u32 = u32::from_le_bytes(*b"oBLK");
const SEALED: u32 = u32::from_le_bytes(*b"oBLS");

/// What a file of sealed blocks is sealed with, and its random id.
#[derive(Clone, Copy)]
pub struct Sealing<'s> {
    pub seal: &'s Seal,
    pub id: [u8; ID],
}

impl Sealing<'_> {
    /// Where a block is, in the words that it is bound to.
    fn place(&self, spot: Spot) -> Vec<u8> {
        [&b"block"[..], &self.id, &spot.off.to_le_bytes()].concat()
    }
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The generation whose file it is in.
    pub file: u64,
    pub off: u64,
}

fn checksum(head: Head, bytes: &[u8]) -> u32 {
    let cpu = Cpu::detect();
    crc32c(cpu, crc32c(cpu, 0, bytes), bytes_of(&Head { crc: 0, ..head }))
}

/// Writes a block at the end of its file; how many bytes it took.
pub fn append(file: &File, spot: Spot, pages: &[u8], sealing: Option<Sealing>) -> Result<u64, ArchiveError> {
    let count = (pages.len() as u64 / PAGE) as u32;
    let compressed = zstd::bulk::compress(pages, LEVEL)?;
    let front = vec![0; HEAD];
    let mut bytes = match sealing {
        Some(sealing) => sealing.seal.close(&sealing.place(spot), front, &compressed)?,
        None => [front, compressed].concat(),
    };
    let body = &bytes[HEAD..];
    let magic = if sealing.is_some() { SEALED } else { MAGIC };
    let mut head = Head { magic, pages: count, len: body.len() as u32, crc: 0 };
    head.crc = checksum(head, body);
    bytes[..HEAD].copy_from_slice(bytes_of(&head));
    file.write_all_at(&bytes, spot.off)?;
    Ok(bytes.len() as u64)
}

/// Reads a block that takes `len` bytes; None if it is damaged, or not sealed as all of its file is.
pub fn read(file: &File, spot: Spot, len: u32, sealing: Option<Sealing>) -> Option<Vec<u8>> {
    let most = zstd::zstd_safe::compress_bound(MOST * PAGE as usize) + HEAD + ADDED;
    let mut bytes = vec![0; (len as usize).min(most)];
    file.read_exact_at(&mut bytes, spot.off).ok()?;
    let mut head = Head::zeroed();
    let (front, body) = bytes.split_at_mut_checked(HEAD)?;
    bytes_of_mut(&mut head).copy_from_slice(front);
    let magic = if sealing.is_some() { SEALED } else { MAGIC };
    let right = head.magic == magic && head.len as usize == body.len() && head.crc == checksum(head, body);
    let raw = head.pages as usize * PAGE as usize;
    if !right || raw > MOST * PAGE as usize {
        return None;
    }
    let pages = match sealing {
        Some(sealing) => zstd::bulk::decompress(sealing.seal.open(&sealing.place(spot), body)?, raw),
        None => zstd::bulk::decompress(body, raw),
    };
    pages.ok().filter(|pages| pages.len() == raw)
}
