//! Blocks: a few pages in a row, compressed together.

use crate::error::ArchiveError;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};
use outlast_store::{crc32c, Cpu, PAGE};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages in a block at most.
pub const MOST: usize = 64;
/// zstd's; higher ones take several times as long for a tenth less.
const LEVEL: i32 = 1;

/// What stands before the compressed bytes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    magic: u32,
    pages: u32,
    /// Compressed bytes.
    len: u32,
    /// Over the compressed bytes, then over the header with 0 here.
    crc: u32,
}

const HEAD: usize = size_of::<Head>();
const MAGIC: u32 = u32::from_le_bytes(*b"oBLK");

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

/// Appends a block to a file that has `end` bytes; how many it took.
pub fn append(file: &File, end: u64, pages: &[u8]) -> Result<u64, ArchiveError> {
    let mut bytes = vec![0; HEAD];
    bytes.extend(zstd::bulk::compress(pages, LEVEL)?);
    let body = &bytes[HEAD..];
    let mut head = Head { magic: MAGIC, pages: (pages.len() as u64 / PAGE) as u32, len: body.len() as u32, crc: 0 };
    head.crc = checksum(head, body);
    bytes[..HEAD].copy_from_slice(bytes_of(&head));
    file.write_all_at(&bytes, end)?;
    Ok(bytes.len() as u64)
}

/// Reads a block that takes `len` bytes; None if it is damaged.
pub fn read(file: &File, off: u64, len: u32) -> Option<Vec<u8>> {
    let mut bytes = vec![0; (len as usize).min(zstd::zstd_safe::compress_bound(MOST * PAGE as usize) + HEAD)];
    file.read_exact_at(&mut bytes, off).ok()?;
    let mut head = Head::zeroed();
    let (front, body) = bytes.split_at_checked(HEAD)?;
    bytes_of_mut(&mut head).copy_from_slice(front);
    let right = head.magic == MAGIC && head.len as usize == body.len() && head.crc == checksum(head, body);
    let raw = head.pages as usize * PAGE as usize;
    if !right || raw > MOST * PAGE as usize {
        return None;
    }
    zstd::bulk::decompress(body, raw).ok().filter(|pages| pages.len() == raw)
}
