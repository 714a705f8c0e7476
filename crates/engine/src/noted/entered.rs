//! Whether the kernel has begun a call that never waits, told by its having read an argument: zeroes, in a page of the session that
//! has no memory until somebody reads there. SIGKILL lets a call that has begun run to its end, so that this one has been made.
//!
//! It serves calls that write nothing and whose effect others may take away at once: a message handed to whoever waits for one, a
//! semaphore that somebody else changes, too.

use crate::calls::message::{DATA, DATA_LEN};
use crate::mutant::without;
use crate::sys::{nr, syscall};
use outlast_image::layout::PAGE;
use outlast_image::mutant::Mutant;

const MADV_REMOVE: u64 = 9;

/// The page, behind the data part of the bounce buffer: what begins there may end in it.
pub const PLACE: u64 = DATA + DATA_LEN;

/// Takes the page's memory away, and so makes it zeroes that nobody has read. False: a read could not be told.
pub fn prepare() -> bool {
    // SAFETY: the page is this module's.
    let removed = unsafe { syscall!(nr::MADVISE, PLACE, PAGE, MADV_REMOVE) } == 0;
    removed && !is_read() && !without(Mutant::Entered)
}

/// Has it been read since? Where the kernel does not tell, it says so.
pub fn is_read() -> bool {
    let mut there = 1u8;
    // SAFETY: the kernel writes a byte for the page.
    unsafe { syscall!(nr::MINCORE, PLACE, PAGE, &raw mut there) };
    there & 1 != 0
}
