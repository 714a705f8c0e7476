//! Files that are mapped and may be removed or replaced by others while the program runs: an upgrade replaces its libraries.
//!
//! A mapping keeps a file, whatever becomes of its name, and needs no descriptor. The anchor therefore maps each file that the program
//! maps, too, some time later; a process cloned from it has these mappings and takes of them what its names do not lead to any more.
//! A process that is taken back in place keeps its own mappings of such files for the same use.
//!
//! No name leads there any more once the program has another root (chroot). So it maps them itself before that, in the same place, and
//! whoever is cloned from it has them for good.

mod keeper;
mod list;
mod pinning;

pub use keeper::Keeper;
pub use list::Told;
pub use pinning::pin;

use crate::sys::{err, nr, syscall};
use core::sync::atomic::{compiler_fence, Ordering::SeqCst};
use outlast_image::layout::{KEPT_BASE, KEPT_LEN};
use outlast_image::region::{backing, Region};

const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;
const MADV_DONTNEED: u64 = 4;
/// Files at most.
const MOST: usize = 1024;

/// A part of a file that is mapped at a place of the engine's.
#[derive(Clone, Copy)]
struct Kept {
    /// 0: nothing is.
    inode: u64,
    is_shared: bool,
    can_write: bool,
    /// The part of the file, in bytes.
    start: u64,
    end: u64,
    place: u64,
    /// How often in a row the program was found not to map it.
    absent: u32,
    /// Nobody could map it again: it stays.
    is_pinned: bool,
}

impl Kept {
    /// Not before what was written earlier, nor after what is written later.
    fn set_inode(&mut self, inode: u64) {
        compiler_fence(SeqCst);
        // SAFETY: the field is the value's own.
        unsafe { (&raw mut self.inode).write_volatile(inode) };
        compiler_fence(SeqCst);
    }
}

const NONE: Kept =
    Kept { inode: 0, is_shared: false, can_write: false, start: 0, end: 0, place: 0, absent: 0, is_pinned: false };

struct Table {
    files: [Kept; MOST],
}

/// Changed by one thread of an anchor, or by a restore.
static mut TABLE: Table = Table { files: [NONE; MOST] };

/// # Safety
/// One user at a time.
unsafe fn table() -> &'static mut Table {
    let this = &raw mut TABLE;
    &mut *this
}

impl Table {
    fn each(&self) -> impl Iterator<Item = &Kept> {
        self.files.iter().filter(|file| file.inode != 0)
    }

    /// Where so many bytes can be mapped.
    fn room(&self, len: u64) -> Option<u64> {
        // Behind all others, or where something was let go of.
        let behind = self.each().map(|file| file.place + (file.end - file.start)).max().unwrap_or(KEPT_BASE);
        let mut place = if behind + len <= KEPT_BASE + KEPT_LEN { behind } else { KEPT_BASE };
        while let Some(end) = place.checked_add(len).filter(|&end| end <= KEPT_BASE + KEPT_LEN) {
            let in_the_way = |file: &&Kept| file.place < end && place < file.place + (file.end - file.start);
            match self.each().find(in_the_way) {
                Some(file) => place = file.place + (file.end - file.start),
                None => return Some(place),
            }
        }
        None
    }

    /// Enters what was mapped. False: there is no place. The anchor may be cloned at any instruction of its thread: what says that
    /// there is a file comes last.
    fn enter(&mut self, kept: Kept) -> bool {
        let Some(file) = self.files.iter_mut().find(|file| file.inode == 0) else { return false };
        *file = Kept { inode: 0, ..kept };
        file.set_inode(kept.inode);
        true
    }
}

fn is_shared(region: &Region) -> bool {
    region.backing == backing::SHARED_FILE
}

/// A restore is about to unmap the region of a file without a name: it is moved instead, for [`take`]. False: it cannot be.
///
/// # Safety
/// Nobody uses the mapping any more.
pub unsafe fn adopt(region: &Region) -> bool {
    let len = region.end - region.start;
    let Some(place) = table().room(len) else { return false };
    let kept = Kept {
        inode: region.inode,
        is_shared: is_shared(region),
        can_write: region.prot & 2 != 0,
        start: region.offset,
        end: region.offset + len,
        place,
        absent: 0,
        is_pinned: false,
    };
    let moved = syscall!(nr::MREMAP, region.start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, place) as u64 == place;
    if moved && !table().enter(kept) {
        syscall!(nr::MUNMAP, place, len);
    }
    moved
}

/// Maps the region of a file from what is kept; false if nothing of it is.
pub fn take(region: &Region, prot: u64) -> bool {
    // SAFETY: a restore has one thread; the target is free, and the place is the engine's.
    unsafe {
        let len = region.end - region.start;
        let has_it = |file: &&Kept| {
            file.inode == region.inode
                && file.is_shared == is_shared(region)
                && file.start <= region.offset
                && region.offset.checked_add(len).is_some_and(|end| end <= file.end)
        };
        let Some(kept) = table().each().find(has_it) else { return false };
        let from = kept.place + (region.offset - kept.start);
        // Another region may want the same pages: they stay. A shared mapping doubles if none of it is to be moved.
        let (moved, flags) = if kept.is_shared { (0, 0) } else { (len, MREMAP_DONTUNMAP) };
        let flags = flags | MREMAP_MAYMOVE | MREMAP_FIXED;
        let mut r = syscall!(nr::MREMAP, from, moved, len, flags, region.start);
        if r == err::EINVAL && !kept.is_shared {
            // Kernels before 5.13 leave only anonymous memory where it was.
            r = syscall!(nr::MREMAP, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, region.start);
        }
        if r as u64 != region.start {
            return false;
        }
        if !kept.is_shared {
            // What the program wrote there is the store's to say.
            syscall!(nr::MADVISE, region.start, len, MADV_DONTNEED);
        }
        !err::is(syscall!(nr::MPROTECT, region.start, len, prot))
    }
}

/// The process is the program's again: nothing is kept there but what nobody could map again.
pub fn leave() {
    // SAFETY: a restore has one thread, and the range is the engine's.
    unsafe {
        if table().each().any(|file| file.is_pinned) {
            for file in table().files.iter_mut().filter(|file| file.inode != 0 && !file.is_pinned) {
                syscall!(nr::MUNMAP, file.place, file.end - file.start);
                *file = NONE;
            }
        } else if table().each().next().is_some() {
            syscall!(nr::MUNMAP, KEPT_BASE, KEPT_LEN);
            table().files.fill(NONE);
        }
    }
}
