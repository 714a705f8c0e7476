//! Several mappings are moved by one mremap, as Linux 6.17 and later do. Not those that a userfaultfd watches, as all of a tracked program's:
//! each is moved by itself.

use crate::own_descriptors::Passing;
use crate::regions;
use crate::sys::{err, nr, syscall};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const MREMAP_MAYMOVE_FIXED: u64 = 1 | 2;
/// The release from which on the kernel does so.
const SINCE: u32 = version(6, 17);

const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// Does this kernel?
pub fn can_be_moved() -> bool {
    static VERSION: AtomicU32 = AtomicU32::new(0);
    if VERSION.load(Relaxed) == 0 {
        let mut release = [0u8; 64];
        // There is none of it where the program's root has no /proc; then it is an old kernel to it.
        if let Ok(file) = Passing::open(c"/proc/sys/kernel/osrelease".as_ptr().cast(), 0) {
            // SAFETY: reads into the buffer.
            unsafe { syscall!(nr::READ, file.fd, release.as_mut_ptr(), release.len()) };
        }
        let mut numbers = release
            .split(|b| !b.is_ascii_digit())
            .map(|digits| digits.iter().fold(0u32, |n, digit| n.wrapping_mul(10).wrapping_add((digit - b'0') as u32)));
        VERSION.store(version(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)), Relaxed);
    }
    VERSION.load(Relaxed) >= SINCE
}

/// Moves each mapping of `old` to where it lies in relation to `new`; gaps stay gaps. The result of the call: as the kernel's, what was
/// moved stays moved when one cannot be.
pub fn move_each(old: (u64, u64), new: u64) -> i64 {
    let mut r = err::EFAULT;
    regions::for_each_mapping(regions::read_maps(), (0, 0), |m| {
        let (start, end) = (m.region.start.max(old.0), m.region.end.min(old.1));
        // The kernel begins with a mapping, not with a gap.
        let is_first = start <= old.0;
        if start < end && (r == new as i64 || is_first) {
            let to = new + (start - old.0);
            // SAFETY: the program asks for it, for its own memory.
            let moved = unsafe { syscall!(nr::MREMAP, start, end - start, end - start, MREMAP_MAYMOVE_FIXED, to) };
            r = if moved == to as i64 { new as i64 } else { moved };
        }
    });
    r
}
