//! The program's side: it maps its files once more while names lead to them.

use super::list::is_to_be_kept;
use super::{table, Kept};
use crate::own_descriptors::Passing;
use crate::regions::{self, Mapped};
use crate::sys::{nr, syscall};
use crate::undo::look;
use outlast_image::region::{backing, region_flag};

const AT_FDCWD: i64 = -100;
const O_RDWR: u64 = 2;
const O_NONBLOCK: u64 = 0o4000;
const O_NOFOLLOW: u64 = 0o400000;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_NORESERVE: u64 = 0x4000;
const PATH_MAX: usize = 4096;

/// What the process maps of files is kept from now on, whatever their names lead to. The caller has the engine's lock.
pub fn pin() {
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        if is_to_be_kept(&m.region) && m.region.flags & region_flag::DELETED == 0 && m.path.len() < PATH_MAX {
            // SAFETY: one thread of the program's has the lock, and no anchor has this memory.
            unsafe { pin_one(&m) };
        }
    });
}

unsafe fn pin_one(m: &Mapped) {
    let (r, len) = (m.region, m.region.end - m.region.start);
    let is_shared = r.backing == backing::SHARED_FILE;
    let can_write = is_shared && r.prot & 2 != 0;
    let (start, end) = (r.offset, r.offset + len);
    let has_it = |file: &&Kept| {
        (file.inode, file.is_shared) == (r.inode, is_shared)
            && file.start <= start
            && end <= file.end
            && file.can_write >= can_write
            && file.is_pinned
    };
    if table().each().any(|file| has_it(&file)) {
        return;
    }
    let mut name = [0u8; PATH_MAX];
    name[..m.path.len()].copy_from_slice(m.path);
    // Opening what is no plain file may have effects.
    let is_it = |look: look::Look| look.is_regular() && look.identity.inode() == r.inode;
    if !look::at(AT_FDCWD, name.as_ptr()).is_ok_and(is_it) {
        return;
    }
    let mode = if can_write { O_RDWR } else { 0 };
    let Ok(file) = Passing::open(name.as_ptr(), mode | O_NONBLOCK | O_NOFOLLOW) else { return };
    let Some(place) = table().room(len).filter(|_| look::of(file.fd as i32).is_ok_and(is_it)) else { return };
    let flags = MAP_FIXED | MAP_NORESERVE | if is_shared { MAP_SHARED } else { MAP_PRIVATE };
    let prot = if can_write { 3 } else { 1 };
    let mapped = syscall!(nr::MMAP, place, len, prot, flags, file.fd, start) as u64 == place;
    let kept = Kept { inode: r.inode, is_shared, can_write, start, end, place, absent: 0, is_pinned: true };
    if mapped && !table().enter(kept) {
        syscall!(nr::MUNMAP, place, len);
    }
}
