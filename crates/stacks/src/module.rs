//! A file that a process executes: how to unwind its functions, and what they are called.

use crate::maps::Executed;
use framehop::ExplicitModuleSectionInfo;
use object::elf::PF_X;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Larger files are not looked into.
const MOST_BYTES: u64 = 1 << 30;
/// O_NONBLOCK: what was a file may be a pipe by now.
const NONBLOCK: i32 = 0o4000;

pub struct Module {
    executed: Executed,
    base: u64,
    sections: ExplicitModuleSectionInfo<Vec<u8>>,
    /// Start and end of each function, relative to the base, and its name; sorted.
    functions: Vec<(Range<u64>, String)>,
}

impl Module {
    /// `None`: it is not there any more, or no ELF file.
    pub fn open(executed: Executed) -> Option<Self> {
        let (bytes, inode) = read(executed.open.as_ref()).ok()?;
        if inode != executed.inode {
            return None;
        }
        let elf: ElfFile64 = ElfFile64::parse(&*bytes).ok()?;
        let base = base(&elf, &executed)?;
        let (sections, functions) = (sections(&elf), functions(&elf));
        Some(Self { executed, base, sections, functions })
    }

    /// For the unwinder.
    pub fn unwinding(&self) -> framehop::Module<Vec<u8>> {
        let info = &self.sections;
        let sections = ExplicitModuleSectionInfo {
            base_svma: info.base_svma,
            text_svma: info.text_svma.clone(),
            text: info.text.clone(),
            got_svma: info.got_svma.clone(),
            eh_frame_svma: info.eh_frame_svma.clone(),
            eh_frame: info.eh_frame.clone(),
            eh_frame_hdr_svma: info.eh_frame_hdr_svma.clone(),
            eh_frame_hdr: info.eh_frame_hdr.clone(),
            ..Default::default()
        };
        framehop::Module::new(self.executed.path.clone(), self.executed.code.clone(), self.base, sections)
    }

    /// Where its code is mapped.
    pub fn range(&self) -> &Range<u64> {
        &self.executed.code
    }

    /// The address that its addresses are relative to.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.executed.path.rsplit('/').next().unwrap_or_default()
    }

    /// The function at this address, and where it begins.
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        let at = address.checked_sub(self.base)?;
        let behind = self.functions.partition_point(|(range, _)| range.start <= at);
        let (range, name) = self.functions.get(behind.checked_sub(1)?)?;
        range.contains(&at).then(|| (demangled(name), self.base + range.start))
    }
}

/// A file and its inode.
pub fn read(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(io::Error::other("no file that is executed"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, metadata.ino()))
}

/// What is added to the file's addresses: where its code is, and where it wants to be.
fn base(elf: &ElfFile64, executed: &Executed) -> Option<u64> {
    let segment = elf.segments().find(|segment| {
        let (start, len) = segment.file_range();
        // A mapping begins at a page, of which another segment's end may have a part.
        let is_code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        is_code && (start & !0xfff..start.saturating_add(len)).contains(&executed.offset)
    })?;
    let start = segment.file_range().0;
    Some(executed.code.start.wrapping_sub(executed.offset.wrapping_sub(start).wrapping_add(segment.address())))
}

fn sections(elf: &ElfFile64) -> ExplicitModuleSectionInfo<Vec<u8>> {
    let found = |name: &str| elf.section_by_name(name);
    let range = |name: &str| found(name).map(|s| s.address()..s.address().saturating_add(s.size()));
    let data = |name: &str| found(name).and_then(|s| s.data().ok()).map(<[u8]>::to_vec);
    ExplicitModuleSectionInfo {
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        ..Default::default()
    }
}

fn functions(elf: &ElfFile64) -> Vec<(Range<u64>, String)> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let mut named: Vec<_> = functions
        .filter_map(|symbol| {
            let end = symbol.address().checked_add(symbol.size())?;
            Some((symbol.address()..end, symbol.name().ok()?.to_string()))
        })
        .collect();
    named.sort_by(|one, other| (one.0.start, &one.1).cmp(&(other.0.start, &other.1)));
    named.dedup_by_key(|(range, _)| range.start);
    named
}

/// A name as it is written in C++ or Rust.
pub fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()?.demangle(&Default::default()).ok());
    cpp.flatten().unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use crate::Process;

    #[inline(never)]
    fn somewhere_in_here() -> u64 {
        std::hint::black_box(7)
    }

    /// Linkers let code begin in the middle of a page of the file that another segment ends in.
    #[test]
    fn functions_of_this_program_have_their_names() {
        assert_eq!(somewhere_in_here(), 7);
        let process = Process::look(std::process::id() as i32);
        for (address, name) in [
            (somewhere_in_here as fn() -> u64 as usize, "outlast_stacks::module::tests::somewhere_in_here"),
            (super::demangled as fn(&str) -> String as usize, "outlast_stacks::module::demangled"),
        ] {
            let address = address as u64;
            assert!(process.function(address).starts_with(&format!("{name} (")), "{}", process.function(address));
        }
    }
}
