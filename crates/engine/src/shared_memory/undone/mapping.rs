//! Which files become the program's own to take back, when it maps them, and when they are mapped again.

use super::super::{protect, unmapped, PROT_WRITE};
use super::{Part, Range};
use crate::control::degrade;
use crate::descriptors::for_each_open;
use crate::dispatch;
use crate::held_files;
use crate::mutant::without;
use crate::own_descriptors::Passing;
use crate::own_files;
use crate::proc;
use crate::regions::Mapped;
use crate::state::Engine;
use crate::sys::{futex_wait, nr, syscall};
use crate::undo;
use core::sync::atomic::AtomicU32;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;
use outlast_image::region::Region;

const MAP_SHARED_FIXED: u64 = 0x11;
const O_RDWR: u64 = 2;
const PATH_MAX: usize = 4096;
/// How often, and how long, a restore waits until nobody else has a file open that was the program's alone.
const NAPS: u32 = 50;
const NAP_NS: u64 = 1_000_000;

/// The program has mapped a file shared. False: it is not one of these. Of a memfd the kernel does not tell who has it open.
pub fn mapped(e: &mut Engine, fd: i32, range: (u64, u64), offset: u64, prot: u32) -> bool {
    let has_name = undo::look_at(fd).is_ok_and(|look| look.links != 0);
    (has_name || !own_files::is_in_memory(fd)) && enter(e, fd, range, offset, prot)
}

fn enter(e: &mut Engine, fd: i32, (start, end): (u64, u64), offset: u64, prot: u32) -> bool {
    let Some(look) = undo::look_at(fd).ok().filter(|look| look.is_regular()) else { return false };
    if without(Mutant::MappedWrites) || !own_files::is_usable(fd, &[]) || undo::is_shared(e, &look.identity) {
        return false;
    }
    held_files::replace_idle(e, &look, fd);
    if !undo::is_open_once(fd) {
        return false;
    }
    let Some(place) = held_files::hold_mapped(e, &look, fd) else { return false };
    unmapped(e, start, end);
    let is_noted = e.shared_memory.put(Range { start, end, prot, alias: 0, undone: Some(Part { place, offset }) });
    if is_noted {
        protect(start, end, prot & !PROT_WRITE);
        dispatch::slow_down_writing();
    }
    is_noted
}

/// Maps a region of the commit again, which was one of these. False: its file cannot be had.
pub fn map(e: &mut Engine, m: &Mapped<'_>) -> bool {
    let r = &m.region;
    // What the program has open, and what it maps, was one open file. Where everything had died it was opened anew; what the engine holds
    // may be left of one who was killed while doing that.
    let mut found = None;
    for_each_open(|fd| {
        let has_name = || proc::link(fd, &mut [0; PATH_MAX]) == m.path;
        let is_it = || has_name() && is_inode(fd, r.inode) && own_files::is_usable(fd, &[]);
        if found.is_none() && !e.fds.is_engine(fd) && is_it() {
            found = Some(fd);
        }
    });
    if let Some(fd) = found.or_else(|| e.held.find(e.fds.own, r.inode)) {
        return map_as(e, r, fd);
    }
    let mut path = [0u8; PATH_MAX];
    let Some(room) = path.get_mut(..m.path.len()).filter(|_| m.path.len() < PATH_MAX) else { return false };
    room.copy_from_slice(m.path);
    Passing::open(path.as_ptr(), O_RDWR).is_ok_and(|file| map_as(e, r, file.fd as i32))
}

fn map_as(e: &mut Engine, r: &Region, fd: i32) -> bool {
    // SAFETY: the range was unmapped.
    let got = unsafe { syscall!(nr::MMAP, r.start, r.end - r.start, r.prot, MAP_SHARED_FIXED, fd, r.offset) };
    if got as u64 != r.start || !is_inode(fd, r.inode) {
        return false;
    }
    let mut is_noted = enter(e, fd, (r.start, r.end), r.offset, r.prot);
    // A predecessor that is about to end may have it open otherwise: one that was killed while it opened everything anew.
    for _ in 0..NAPS {
        if is_noted || undo::is_open_once(fd) {
            break;
        }
        futex_wait(&AtomicU32::new(0), 0, Some(NAP_NS));
        is_noted = enter(e, fd, (r.start, r.end), r.offset, r.prot);
    }
    if !is_noted && r.prot & PROT_WRITE != 0 {
        degrade(Degradation::SharedMapping);
    }
    true
}

fn is_inode(fd: i32, inode: u64) -> bool {
    undo::look_at(fd).is_ok_and(|look| look.is_regular() && look.identity.inode() == inode)
}
