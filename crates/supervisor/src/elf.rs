//! The loadable segments of the engine, read from its ELF file.
//!
//! The file is our own and embedded; it is parsed with checks all the same, because a test may embed another.

use crate::error::Error;
use outlast_image::layout::{ENGINE_BASE, ENGINE_ROOM, PAGE};

/// A range of pages with one protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, a multiple of the page size.
    pub start: u64,
    /// Where its bytes lie in the ELF file.
    pub file: std::ops::Range<usize>,
    /// Address of the first byte of the file, at or above `start`.
    pub vaddr: u64,
    /// First address after the pages that hold bytes of the file; a multiple of the page size.
    pub file_end: u64,
    /// First address after the segment; a multiple of the page size. Between `file_end` and `end` lies zeroed memory.
    pub end: u64,
    /// `PROT_*`.
    pub prot: i32,
}

/// What of an ELF file has to be mapped, and where it starts to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub entry: u64,
    pub segments: Vec<Segment>,
}

const PT_LOAD: u32 = 1;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// Reads the program headers of a static 64-bit executable linked into the engine's range.
pub fn parse(elf: &[u8]) -> Result<Layout, Error> {
    let bad = Error::BadEngine;
    if elf.len() < HEADER || !elf.starts_with(b"\x7fELF\x02\x01") || half(elf, 18)? != libc::EM_X86_64 as u64 {
        return Err(bad("not a 64-bit x86-64 ELF file"));
    }
    let (entry, table) = (word(elf, 24)?, word(elf, 32)? as usize);
    let (size, count) = (half(elf, 54)? as usize, half(elf, 56)? as usize);
    if size != PROGRAM_HEADER {
        return Err(bad("program headers of an unknown size"));
    }
    let mut segments = Vec::new();
    for i in 0..count {
        let at = table.checked_add(i * size).ok_or(bad("program headers outside the file"))?;
        if quarter(elf, at)? == PT_LOAD {
            segments.extend(segment(elf, at)?);
        }
    }
    let inside = |s: &Segment| s.prot & libc::PROT_EXEC != 0 && (s.start..s.end).contains(&entry);
    match segments.iter().any(inside) {
        true => Ok(Layout { entry, segments }),
        false => Err(bad("entry point outside the text")),
    }
}

fn segment(elf: &[u8], at: usize) -> Result<Option<Segment>, Error> {
    let flags = quarter(elf, at + 4)?;
    let (offset, vaddr) = (word(elf, at + 8)?, word(elf, at + 16)?);
    let (in_file, in_memory) = (word(elf, at + 32)?, word(elf, at + 40)?);
    if in_memory == 0 {
        return Ok(None);
    }
    let room = ENGINE_BASE..=ENGINE_BASE + ENGINE_ROOM;
    let end = vaddr.checked_add(in_memory).filter(|end| room.contains(end) && room.contains(&vaddr));
    let file_end = offset.checked_add(in_file).filter(|end| *end <= elf.len() as u64);
    let (Some(end), Some(file_end)) = (end, file_end) else {
        return Err(Error::BadEngine("segment outside the file or the engine's address range"));
    };
    if in_file > in_memory || flags & 3 == 3 {
        return Err(Error::BadEngine("segment both writable and executable, or larger in the file than in memory"));
    }
    let prot = [(4, libc::PROT_READ), (2, libc::PROT_WRITE), (1, libc::PROT_EXEC)];
    Ok(Some(Segment {
        start: vaddr & !(PAGE - 1),
        file: offset as usize..file_end as usize,
        vaddr,
        file_end: if in_file == 0 { vaddr & !(PAGE - 1) } else { round_up(vaddr + in_file) },
        end: round_up(end),
        prot: prot.iter().filter(|(bit, _)| flags & bit != 0).fold(0, |all, (_, prot)| all | prot),
    }))
}

fn round_up(address: u64) -> u64 {
    (address + PAGE - 1) & !(PAGE - 1)
}

fn bytes<const N: usize>(elf: &[u8], at: usize) -> Result<[u8; N], Error> {
    let end = at.checked_add(N).ok_or(Error::BadEngine("truncated"))?;
    Ok(elf.get(at..end).ok_or(Error::BadEngine("truncated"))?.try_into().expect("the slice is N long"))
}

fn half(elf: &[u8], at: usize) -> Result<u64, Error> {
    Ok(u16::from_le_bytes(bytes(elf, at)?).into())
}

fn quarter(elf: &[u8], at: usize) -> Result<u32, Error> {
    Ok(u32::from_le_bytes(bytes(elf, at)?))
}

fn word(elf: &[u8], at: usize) -> Result<u64, Error> {
    Ok(u64::from_le_bytes(bytes(elf, at)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_embedded_engine_is_mappable() {
        let layout = parse(crate::engine::ELF).unwrap();
        assert!(layout.segments.iter().all(|s| s.start >= ENGINE_BASE && s.end <= ENGINE_BASE + ENGINE_ROOM));
        assert!(layout.segments.iter().all(|s| s.prot != libc::PROT_WRITE | libc::PROT_EXEC));
    }

    #[test]
    fn a_truncated_engine_is_refused_at_every_length() {
        let headers = HEADER + 8 * PROGRAM_HEADER;
        for length in 0..headers.min(crate::engine::ELF.len()) {
            assert!(parse(&crate::engine::ELF[..length]).is_err(), "{length} bytes were accepted");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the headers say: what is accepted lies in the file and in the engine's range.
        #[test]
        fn damaged_headers_are_refused_or_mappable(
            changes in prop::collection::vec((0..HEADER + 8 * PROGRAM_HEADER, any::<u8>()), 1..6),
        ) {
            let mut elf = crate::engine::ELF.to_vec();
            changes.into_iter().for_each(|(at, byte)| elf[at] = byte);
            let Ok(layout) = parse(&elf) else { return Ok(()) };
            for s in &layout.segments {
                prop_assert!(s.start >= ENGINE_BASE && s.end <= ENGINE_BASE + ENGINE_ROOM, "{:?}", s);
                prop_assert!(s.start <= s.vaddr && s.vaddr <= s.end && s.file_end <= s.end, "{:?}", s);
                prop_assert!(s.file.end <= elf.len() && s.vaddr + s.file.len() as u64 <= s.end, "{:?}", s);
            }
        }
    }

    #[test]
    fn a_writable_text_is_refused() {
        let mut elf = crate::engine::ELF.to_vec();
        let table = word(&elf, 32).unwrap() as usize;
        elf[table + 4] |= 3;
        assert!(parse(&elf).is_err());
    }
}
