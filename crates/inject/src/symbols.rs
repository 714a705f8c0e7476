//! Where functions and variables lie in a running process, from the symbol tables of the files that it maps.

use crate::memory_map::{self, Mapping};
use object::{Object, ObjectSegment, ObjectSymbol};

/// A symbol of the program, or of the first library that defines it: its address.
pub fn find(pid: i32, name: &str) -> Option<u64> {
    let mappings = memory_map::of(pid);
    let mut seen: Vec<&str> = Vec::new();
    mappings.iter().filter(|m| m.path.starts_with('/')).find_map(|mapping| {
        if seen.contains(&mapping.path.as_str()) {
            return None;
        }
        seen.push(&mapping.path);
        in_file(mapping, name)
    })
}

fn in_file(first: &Mapping, name: &str) -> Option<u64> {
    let bytes = std::fs::read(&first.path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let segment = file.segments().find(|segment| segment.file_range().0 & !0xfff == first.offset)?;
    let bias = first.range.start.checked_sub(segment.address() & !0xfff)?;
    let symbol = file.symbols().chain(file.dynamic_symbols()).find(|s| s.is_definition() && s.name() == Ok(name))?;
    bias.checked_add(symbol.address())
}

/// Where the program itself begins, after the loader: AT_ENTRY of the auxiliary vector.
pub fn entry(pid: i32) -> Option<u64> {
    let words = std::fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let word = |at: &[u8]| at.try_into().map(u64::from_ne_bytes).ok();
    let pairs = words.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    pairs.into_iter().find(|(key, _)| *key == Some(libc::AT_ENTRY))?.1
}
