//! Which pages are the process's own, from /proc/self/pagemap: any kernel has it.

use super::areas::{self, area_flag};
use crate::control::fail;
use crate::scratch;
use crate::sys::{err, nr, syscall};
use crate::unreadable::is_readable;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// A page of a file, or of shared memory.
const FILE: u64 = 1 << 61;

/// Reports the pages of `start..end` whose content is the process's own. `fd` is its pagemap.
pub fn private(fd: i32, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
    areas::each(start, end, |area| {
        let mut found = (0, 0);
        let mut at = area.start;
        while at < area.end {
            let entries = read(fd, at, area.end);
            for (i, &entry) in entries.iter().enumerate() {
                let page = at + i as u64 * 4096;
                if !is_own(entry, area.flags, page) {
                    continue;
                }
                if page != found.1 {
                    if found.0 != found.1 {
                        f(found.0, found.1);
                    }
                    found.0 = page;
                }
                found.1 = page + 4096;
            }
            at += entries.len() as u64 * 4096;
        }
        if found.0 != found.1 {
            f(found.0, found.1);
            if let Some(area) = areas::find(area.start) {
                area.flags |= area_flag::ROOTED;
            }
        }
    });
}

/// The entries from `start` on, at most up to `end`.
fn read(fd: i32, start: u64, end: u64) -> &'static [u64] {
    let buf = scratch::page_vector();
    let half = buf.len() / 2;
    let buf = &mut buf[half..];
    let want = (((end - start) >> 12) as usize * 8).min(buf.len());
    // SAFETY: the kernel writes at most `want` bytes, which lie in the buffer.
    let n = unsafe { syscall!(nr::PREAD64, fd, buf.as_mut_ptr(), want, (start >> 12) * 8) };
    if n < 8 {
        fail!(if n < 0 { n } else { err::EINVAL });
    }
    // SAFETY: aligned, and just filled.
    unsafe { core::slice::from_raw_parts(buf.as_ptr() as *const u64, n as usize / 8) }
}

fn is_own(entry: u64, flags: u32, page: u64) -> bool {
    let shared = flags & area_flag::SHARED != 0;
    if entry & (PRESENT | SWAPPED) == 0 || entry & FILE != 0 && !shared {
        return false;
    }
    // The zero page cannot be told from others; but what is zero comes back as zero where no file lies below.
    entry & PRESENT == 0 || flags & area_flag::FILE != 0 || !is_zero(page)
}

fn is_zero(page: u64) -> bool {
    if !is_readable(page) {
        return false;
    }
    // SAFETY: the page is present, and can be read.
    let words = unsafe { &*(page as *const [u64; 512]) };
    words.iter().all(|&w| w == 0)
}
