//! The group's memory mapped once more, where the engine can write to it while the program cannot.

use super::table::Range;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use outlast_image::layout::{ALIAS_BASE, ALIAS_LEN};

const MREMAP_MAYMOVE_FIXED: u64 = 1 | 2;
const PROT_READ_WRITE: u64 = 1 | 2;
const MADV_DONTFORK: u64 = 10;
const MADV_DONTDUMP: u64 = 16;

/// Maps what the program has mapped shared there; 0 if that cannot be had: huge pages, files that may only be read, no room.
pub fn make(e: &Engine, start: u64, end: u64) -> u64 {
    let len = end - start;
    let at = e.shared_memory.aliases_end(ALIAS_BASE);
    if at + len > ALIAS_BASE + ALIAS_LEN {
        return 0;
    }
    // SAFETY: of the engine's addresses, and free. With an old length of 0 a shared mapping is not moved but made once more.
    unsafe {
        if syscall!(nr::MREMAP, start, 0, len, MREMAP_MAYMOVE_FIXED, at) as u64 != at {
            return 0;
        }
        // An anchor, and a child, make their own from what they map.
        syscall!(nr::MADVISE, at, len, MADV_DONTFORK);
        syscall!(nr::MADVISE, at, len, MADV_DONTDUMP);
        if syscall!(nr::MPROTECT, at, len, PROT_READ_WRITE) != 0 {
            syscall!(nr::MUNMAP, at, len);
            return 0;
        }
    }
    at
}

/// Unmaps that of a range, or of a part of one.
pub fn drop(range: Range) {
    if range.alias != 0 {
        // SAFETY: the engine's own mapping.
        unsafe { syscall!(nr::MUNMAP, range.alias, range.end - range.start) };
    }
}

/// Unmaps all.
pub fn drop_all() {
    // SAFETY: as above.
    unsafe { syscall!(nr::MUNMAP, ALIAS_BASE, ALIAS_LEN) };
}
