//! The code of functions that are called so, in a file.

use crate::module::{self, demangled};
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::io;
use std::path::Path;

/// What compilers call the part of a function that is seldom executed.
const COLD: &str = ".cold";

/// A piece of a function's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where it is linked to.
    pub address: u64,
    /// Where it lies in the file.
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// It is not what is called, but a part that lies elsewhere.
    pub is_cold: bool,
}

impl Code {
    /// Whether the address that it is linked to is in it.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.bytes.len() as u64
    }
}

/// For each of these names all functions that are called so, demangled or as it is, each with its cold part.
///
/// # Errors
/// The file cannot be read, or is none that is executed.
pub fn functions(file: &Path, names: &[&str]) -> io::Result<Vec<Vec<Code>>> {
    let (bytes, _) = module::read(file)?;
    let elf: ElfFile64 = ElfFile64::parse(&*bytes).map_err(io::Error::other)?;
    let mut found: Vec<Vec<Code>> = vec![Vec::new(); names.len()];
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let Ok(called) = symbol.name() else { continue };
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
            continue;
        }
        let (whole, is_cold) = called.strip_suffix(COLD).map_or((called, false), |whole| (whole, true));
        // Mangled names begin so, and there are very many others.
        let written = if whole.starts_with('_') { demangled(whole) } else { whole.into() };
        for (name, found) in names.iter().zip(&mut found) {
            let is_it = *name == whole || *name == written;
            if is_it && !found.iter().any(|f| f.address == symbol.address()) {
                found.extend(code(&elf, &symbol, is_cold));
            }
        }
    }
    for found in &mut found {
        found.sort_by_key(|code| code.is_cold);
        // A cold part alone is no function.
        if found.first().is_some_and(|code| code.is_cold) {
            found.clear();
        }
    }
    Ok(found)
}

fn code(elf: &ElfFile64, symbol: &ElfSymbol64, is_cold: bool) -> Option<Code> {
    elf.segments().find_map(|segment| {
        let bytes = segment.data_range(symbol.address(), symbol.size()).ok()??.to_vec();
        let offset = segment.file_range().0.wrapping_add(symbol.address().wrapping_sub(segment.address()));
        Some(Code { address: symbol.address(), offset, bytes, is_cold })
    })
}
