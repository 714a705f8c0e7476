//! Programs and libraries of this machine, as the tests see them.
#![allow(dead_code)]

use object::{Object, ObjectSegment, ObjectSymbol};
use std::path::PathBuf;

/// The executable segment of an ELF file.
pub struct Text {
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// Start and length of a function, and its name.
pub struct Function {
    pub name: String,
    pub address: u64,
    pub len: u64,
}

/// One ELF file: its executable segments and named functions.
pub struct Binary {
    pub path: PathBuf,
    pub texts: Vec<Text>,
    pub functions: Vec<Function>,
}

impl Binary {
    pub fn open(path: PathBuf) -> Option<Binary> {
        let data = std::fs::read(&path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let executable = |flags| matches!(flags, object::SegmentFlags::Elf { p_flags } if p_flags & 1 != 0);
        let texts = file
            .segments()
            .filter(|segment| executable(segment.flags()))
            .map(|segment| Text { address: segment.address(), bytes: segment.data().unwrap().to_vec() })
            .collect();
        let functions = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0)
            .map(|symbol| Function {
                name: symbol.name().unwrap_or("").to_string(),
                address: symbol.address(),
                len: symbol.size(),
            })
            .collect::<Vec<_>>();
        let mut functions: Vec<Function> = functions;
        functions.sort_by_key(|function| function.address);
        functions.dedup_by_key(|function| function.address);
        Some(Binary { path, texts, functions })
    }
}

/// Files that this process has mapped executable, whose name contains `part`.
fn mapped(part: &str) -> Option<PathBuf> {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().find_map(|line| {
        let path = line.split_ascii_whitespace().nth(5)?;
        (line.contains("r-xp") && path.starts_with('/') && path.contains(part)).then(|| PathBuf::from(path))
    })
}

/// `libc` and `ld.so` of this process, then whatever of the rest this machine has, then the files of `OUTLAST_BINARIES`
/// (separated by colons).
pub fn binaries() -> Vec<Binary> {
    let mut paths: Vec<PathBuf> = ["libc.so", "ld-linux"].iter().filter_map(|part| mapped(part)).collect();
    for name in ["libpthread.so.0", "libm.so.6", "libstdc++.so.6", "libcrypto.so.3", "libpython3.11.so.1.0"] {
        paths.push(PathBuf::from("/usr/lib/x86_64-linux-gnu").join(name));
    }
    for name in ["/bin/busybox", "/sbin/ldconfig", "/usr/local/go/bin/go", "/lib/ld-musl-x86_64.so.1"] {
        paths.push(PathBuf::from(name));
    }
    if let Ok(more) = std::env::var("OUTLAST_BINARIES") {
        paths.extend(more.split(':').map(PathBuf::from));
    }
    let mut seen = std::collections::HashSet::new();
    paths
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| seen.insert(path.clone()))
        .filter_map(Binary::open)
        .collect()
}

impl Binary {
    /// The executable segment that holds `address`, and where in it.
    pub fn locate(&self, address: u64) -> Option<(&Text, usize)> {
        self.texts.iter().find_map(|text| {
            let offset = address.checked_sub(text.address)? as usize;
            (offset < text.bytes.len()).then_some((text, offset))
        })
    }
}

impl Text {
    /// Addresses of the `syscall` instructions, by straight decoding.
    pub fn sites(&self) -> Vec<u64> {
        use iced_x86::{Code, Decoder, DecoderOptions};
        Decoder::with_ip(64, &self.bytes, self.address, DecoderOptions::NONE)
            .iter()
            .filter(|instruction| instruction.code() == Code::Syscall)
            .map(|instruction| instruction.ip())
            .collect()
    }

    pub fn code(&self) -> outlast_rewrite::Code<'_> {
        outlast_rewrite::Code { address: self.address, bytes: &self.bytes }
    }
}
