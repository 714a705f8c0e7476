//! Shared anonymous memory becomes that of a file without a name, which a process made later can map.

use crate::held_files;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::tracker::areas::{area_flag, Area};
use crate::tracker::{Content, Track};
use crate::user;
use outlast_image::layout::PAGE;
use outlast_image::region::{backing, Region};

const MFD_CLOEXEC: u64 = 1;
const MAP_SHARED_FIXED: u64 = 0x11;
const PROT_READ: u32 = 1;
const NAME: &core::ffi::CStr = c"outlast-shared";
/// What /proc/self/maps calls it.
pub const CONVERTED: &[u8] = b"/memfd:outlast-shared";

/// Converts those of the regions that are anonymous. False: there is no room for them, and all is as it was, or some are converted.
pub fn anonymous(e: &mut Engine, regions: &[Region]) -> bool {
    let is_one = |r: &&Region| r.backing == backing::SHARED_ANONYMOUS;
    let len: u64 = regions.iter().filter(is_one).map(|r| r.end - r.start).sum();
    if len == 0 {
        return true;
    }
    // SAFETY: makes a file of the engine's own.
    let fd = unsafe { syscall!(nr::MEMFD_CREATE, NAME.as_ptr(), MFD_CLOEXEC) };
    if err::is(fd) {
        return false;
    }
    // SAFETY: as above.
    let mut done = unsafe { syscall!(nr::FTRUNCATE, fd, len) } == 0;
    let mut offset = 0;
    for region in regions.iter().filter(is_one) {
        done = done && fill(fd, region, offset) && replace(e, fd, region, offset);
        offset += region.end - region.start;
    }
    // SAFETY: the engine's own number; what is held is held under another.
    unsafe { syscall!(nr::CLOSE, fd) };
    done
}

/// Writes the content to the file, pages of zeros left out.
fn fill(fd: i64, r: &Region, offset: u64) -> bool {
    let is_unreadable = r.prot & PROT_READ == 0;
    // SAFETY: the program's own pages, which become the file's in a moment.
    unsafe {
        if is_unreadable && err::is(syscall!(nr::MPROTECT, r.start, r.end - r.start, PROT_READ)) {
            return false;
        }
        (r.start..r.end).step_by(PAGE as usize).all(|page| {
            let mut words = [0u64; 512];
            !user::read_bytes(page, bytemuck::bytes_of_mut(&mut words))
                || words.iter().all(|&word| word == 0)
                || syscall!(nr::PWRITE64, fd, words.as_ptr(), PAGE, offset + (page - r.start)) == PAGE as i64
        })
    }
}

/// What is in the region is not committed any more.
pub fn is_no_more_its_own(e: &mut Engine, r: &Region) {
    e.cool(r.start, r.end);
    e.tracker.uncover(r.start, r.end);
    e.drop_range(r.start, r.end);
    e.tracker.cover(&Area { start: r.start, end: r.end, prot: r.prot, flags: area_flag::FOREIGN }, Content::Fresh);
}

/// Puts the file's pages in the place of the region's.
fn replace(e: &mut Engine, fd: i64, r: &Region, offset: u64) -> bool {
    e.cool(r.start, r.end);
    // SAFETY: the content is the same.
    let got = unsafe { syscall!(nr::MMAP, r.start, r.end - r.start, r.prot, MAP_SHARED_FIXED, fd, offset) };
    if got as u64 != r.start {
        return false;
    }
    is_no_more_its_own(e, r);
    held_files::mapped(e, fd as i32, (r.start, r.end));
    e.maps_dirty = true;
    true
}
