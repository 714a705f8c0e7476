//! Functions that a person names as code sections, in a program that knows nothing of it: the kernel has a breakpoint at the entry and at each
//! exit (uprobes), where a BPF program takes note of it. Breakpoints belong to the file: a recovered process has them as soon as it maps
//! that, and nothing of them is committed.

mod exits;
mod program;

use crate::bpf;
use crate::fault_list::Namespace;
use libc::pid_t;
use outlast_interfaces::sect::{Inside, Left, Section};
use outlast_stacks::symbols::{self, Code};
use program::{cookie, Key, Maps, Run};
use rustix::fs::stat;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::{canonicalize, read_link};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const NAME: &[u8] = b"outlast_section";
/// The kernel asks; no helper that is used insists on the GPL.
const LICENSE: &CStr = c"Apache-2.0 OR MIT";
/// Threads times sections that are kept apart.
const RUNS: u32 = 8192;

/// Breakpoints, for as long as this lives.
pub struct Probes {
    runs: OwnedFd,
    followed: OwnedFd,
    _links: Vec<OwnedFd>,
    sections: Vec<Probed>,
}

/// A section's functions, in a file of this name.
struct Probed {
    file: String,
    pieces: Vec<Code>,
}

/// The file and the function that a person means: `/FILE:SYMBOL`, or `SYMBOL` in the program's own.
fn meant<'a>(section: &'a str, program: &Path) -> (PathBuf, &'a str) {
    match section.split_once(':') {
        Some((file, symbol)) if file.starts_with('/') => (file.into(), symbol),
        _ => (program.into(), section),
    }
}

impl Probes {
    /// # Errors
    /// There is no such function, or the kernel does not allow it; why.
    pub fn begin(sections: &[String], program: &Path) -> Result<Self, String> {
        let mut files: BTreeMap<PathBuf, Vec<(u32, &str)>> = BTreeMap::new();
        for (number, section) in (0..).zip(sections) {
            let (file, symbol) = meant(section, program);
            files.entry(file).or_default().push((number, symbol));
        }
        let mut probed: BTreeMap<u32, Probed> = BTreeMap::new();
        let mut places: Vec<(PathBuf, Vec<(u64, u64)>)> = Vec::new();
        for (file, sections) in files {
            let symbols: Vec<&str> = sections.iter().map(|(_, symbol)| *symbol).collect();
            let found = symbols::functions(&file, &symbols).map_err(|e| told(&file, symbols[0], &e))?;
            let mut of_file = Vec::new();
            for ((number, symbol), pieces) in sections.into_iter().zip(found) {
                of_file.extend(places_of(&pieces, number).map_err(|why| told(&file, symbol, &why))?);
                probed.insert(number, Probed { file: name_of(&file), pieces });
            }
            places.push((file, of_file));
        }
        let refused =
            |e| format!("the kernel allows no breakpoints for it, which take CAP_BPF, CAP_PERFMON and Linux 6.6: {e}");
        let namespace = stat("/proc/self/ns/pid").map_err(refused)?;
        let namespace = Namespace { device: namespace.st_dev, inode: namespace.st_ino };
        let runs = bpf::create_table(NAME, size_of::<Key>(), size_of::<Run>(), RUNS).map_err(refused)?;
        let followed = bpf::create_array(NAME, size_of::<u32>()).map_err(refused)?;
        let maps = Maps { runs: runs.as_raw_fd(), followed: followed.as_raw_fd() };
        let code = program::program(maps, namespace);
        let code = bpf::load_probe(NAME, &code, LICENSE).map_err(refused)?;
        let mut links = Vec::new();
        for (file, places) in places {
            let (offsets, cookies): (Vec<u64>, Vec<u64>) = places.into_iter().unzip();
            let file = CString::new(file.into_os_string().into_vec()).map_err(|e| e.to_string())?;
            links.push(bpf::attach_probes(code.as_fd(), &file, &offsets, &cookies).map_err(refused)?);
        }
        Ok(Self { runs, followed, _links: links, sections: probed.into_values().collect() })
    }

    /// From now on it is this process whose threads are followed.
    pub fn follow(&self, pid: pid_t) {
        // The array has an element 0.
        let _ = bpf::update(self.followed.as_fd(), &0u32, &(pid as u32));
    }

    /// Nothing is known of any thread any more.
    pub fn forget_all(&self) {
        let _ = bpf::clear::<Key>(self.runs.as_fd());
    }

    /// Nor of this one and this section.
    pub fn forget(&self, thread: pid_t, section: u32) {
        let _ = bpf::delete(self.runs.as_fd(), &Key { thread: thread as u32, section });
    }

    /// Whether this place of a file of this name is in one of the section's functions.
    pub fn is_code_of(&self, section: u32, file: &str, address: u64) -> bool {
        let section = self.sections.get(section as usize).filter(|section| section.file == file);
        section.is_some_and(|section| section.pieces.iter().any(|piece| piece.contains(address)))
    }

    /// What a thread is in, with where its stack was there, and what it has left last.
    pub fn of_thread(&self, thread: pid_t) -> (Vec<(Inside, u64)>, Vec<Left>) {
        let (mut inside, mut left) = (Vec::new(), Vec::new());
        for number in 0..self.sections.len() as u32 {
            let key = Key { thread: thread as u32, section: number };
            let Ok(Run { runs, is_inside, stack, exit }) = bpf::lookup(self.runs.as_fd(), &key) else { continue };
            let section = Section::Symbol(number);
            if is_inside != 0 {
                inside.push((Inside { section, run: runs }, stack));
            }
            let last = runs - u64::from(is_inside != 0);
            if last > 0 && exit > 0 {
                left.push(Left { section, run: last, exit: exit - 1 });
            }
        }
        // The stack grows downwards.
        inside.sort_by_key(|(_, stack)| std::cmp::Reverse(*stack));
        (inside, left)
    }
}

/// What the kernel calls the file where it is mapped.
fn name_of(file: &Path) -> String {
    // A link of /proc leads also to what has another name now, or none.
    let path = canonicalize(file).or_else(|_| read_link(file)).unwrap_or_else(|_| file.into());
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn told(file: &Path, symbol: &str, why: &dyn std::fmt::Display) -> String {
    format!("section {symbol} in {}: {why}", file.display())
}

/// Offsets in the file and what the BPF program is told there.
fn places_of(pieces: &[Code], number: u32) -> Result<Vec<(u64, u64)>, &'static str> {
    let first = pieces.first().ok_or("there is no such function")?;
    let mut places = Vec::new();
    for piece in pieces {
        let exits = exits::exits(piece, pieces).ok_or("where it is left cannot be seen in its instructions")?;
        if !piece.is_cold {
            places.push((piece.offset, cookie(number, 0)));
        }
        // Exits count from 1, since 0 is the entry. An entry that is an exit, too, is nothing to be seen of.
        let exits = exits.into_iter().filter(|exit| *exit != 0 || piece.is_cold);
        let own = |exit: u64| piece.address.wrapping_sub(first.address).wrapping_add(exit) as u32;
        let place = |exit| (piece.offset.wrapping_add(exit), cookie(number, own(exit).wrapping_add(1).max(1)));
        places.extend(exits.map(place));
    }
    Ok(places)
}
