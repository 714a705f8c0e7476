//! The code of functions that are called so, in a file.

use crate::module::{demangled, MOST_BYTES};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::fs::File;
use std::io::{self, Read};
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

/// All of this name, demangled or as it is, each with its cold part.
///
/// # Errors
/// The file cannot be read, or is none that is executed.
pub fn functions(file: &Path, name: &str) -> io::Result<Vec<Code>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let elf: ElfFile64 = ElfFile64::parse(&*bytes).map_err(io::Error::other)?;
    let mut found: Vec<Code> = Vec::new();
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let Ok(called) = symbol.name() else { continue };
        let (whole, is_cold) = called.strip_suffix(COLD).map_or((called, false), |whole| (whole, true));
        let is_one = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        if !is_one || whole != name && demangled(whole) != name || found.iter().any(|f| f.address == symbol.address()) {
            continue;
        }
        let code = elf.segments().find_map(|segment| {
            let bytes = segment.data_range(symbol.address(), symbol.size()).ok()??;
            Some((segment.file_range().0 + symbol.address() - segment.address(), bytes.to_vec()))
        });
        if let Some((offset, bytes)) = code {
            found.push(Code { address: symbol.address(), offset, bytes, is_cold });
        }
    }
    // A cold part alone is no function.
    found.sort_by_key(|code| code.is_cold);
    Ok(if found.first().is_some_and(|code| !code.is_cold) { found } else { Vec::new() })
}
