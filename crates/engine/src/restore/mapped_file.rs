//! The file behind a mapping: opened by its name or, where it has none any more (a memfd, an unlinked file), found among
//! the program's descriptors or among what is kept of it.

use crate::descriptors::for_each_open;
use crate::kept_files;
use crate::own_descriptors::Passing;
use crate::proc;
use crate::regions::Mapped;
use crate::state::engine;
use crate::sys::{nr, syscall};
use outlast_image::region::{region_flag, Region};

const MAP_SHARED: u64 = 1;
const MAP_FIXED: u64 = 0x10;
const PROT_WRITE: u32 = 2;
const PATH_MAX: usize = 4096;
const DELETED: &[u8] = b" (deleted)";

/// The file that was mapped last. Neighbours that were one mapping of it can only become one again if it is not opened
/// once more for the second.
#[derive(Default)]
pub struct Last<'a>(Option<(&'a [u8], u64, Passing)>);

/// Maps the file over the free region `m`; false if it cannot be had.
pub fn map_file<'a>(m: &Mapped<'a>, flags: u64, prot: u64, last: &mut Last<'a>) -> bool {
    if m.path.len() > PATH_MAX || m.path.is_empty() {
        return false;
    }
    (m.region.flags & region_flag::DELETED == 0 && map_by_name(m, flags, prot, last))
        || map_held(&m.region, flags, prot)
        || map_by_descriptor(m, flags, prot)
        || kept_files::take(&m.region, prot)
}

fn map_by_name<'a>(m: &Mapped<'a>, flags: u64, prot: u64, last: &mut Last<'a>) -> bool {
    let mode = if flags == MAP_SHARED && m.region.prot & PROT_WRITE != 0 { 2 } else { 0 };
    if !matches!(last.0, Some((path, how, _)) if path == m.path && how == mode) {
        let mut path = [0u8; PATH_MAX + 1];
        path[..m.path.len()].copy_from_slice(m.path);
        last.0 = None;
        last.0 = Passing::open(path.as_ptr(), mode).ok().map(|file| (m.path, mode, file));
    }
    let mapped = last.0.as_ref().is_some_and(|(_, _, file)| map(file.fd, &m.region, flags, prot));
    if last.0.as_ref().is_some_and(|(_, _, file)| file.took_spare) {
        // Others need it.
        last.0 = None;
    }
    mapped
}

/// The engine's own descriptor of the file: no other can have its inode as long as that is open, whatever it is called.
fn map_held(region: &Region, flags: u64, prot: u64) -> bool {
    // SAFETY: a restore has one thread.
    let e = unsafe { engine() };
    e.held.find(e.fds.own, region.inode).is_some_and(|fd| map(fd.into(), region, flags, prot))
}

/// A descriptor of the same file, by inode and by the name that it had.
fn map_by_descriptor(m: &Mapped<'_>, flags: u64, prot: u64) -> bool {
    let mut mapped = false;
    for_each_open(|fd| {
        let mut name = [0u8; PATH_MAX + DELETED.len()];
        let name = proc::link(fd, &mut name);
        let same = name.strip_suffix(DELETED).unwrap_or(name) == m.path;
        mapped = mapped || same && map(fd as i64, &m.region, flags, prot);
    });
    mapped
}

fn map(fd: i64, r: &Region, flags: u64, prot: u64) -> bool {
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes; the range was unmapped.
    unsafe {
        let same = syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0 && st[1] == r.inode;
        same && syscall!(nr::MMAP, r.start, r.end - r.start, prot, flags | MAP_FIXED, fd, r.offset) as u64 == r.start
    }
}
