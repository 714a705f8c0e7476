//! Pages that were written and cannot be read: the program has taken the permission away since, and moved them, which makes them count
//! as written. They are made readable for the moment; all threads stand still.

use crate::control::fail;
use crate::regions;
use crate::sys::{err, nr, syscall};
use crate::user;

const PAGE: u64 = 4096;
const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;

/// Calls `f` for all of a range, piece by piece, each readable while it does.
pub fn each_readable(start: u64, end: u64, mut f: impl FnMut(u64, u64)) {
    let mut at = start;
    while at < end {
        let readable = is_readable(at);
        let mut stop = at + PAGE;
        while stop < end && is_readable(stop) == readable {
            stop += PAGE;
        }
        match readable {
            true => f(at, stop),
            false => open(at, stop, &mut f),
        }
        at = stop;
    }
}

pub fn is_readable(page: u64) -> bool {
    user::is_readable(page)
}

/// Opens whole mappings, so that none is split, which there might be no room for.
fn open(start: u64, end: u64, f: &mut impl FnMut(u64, u64)) {
    let protect = |(start, end): (u64, u64), prot: u64| {
        // SAFETY: the program does not run; it has what it had when it does.
        let r = unsafe { syscall!(nr::MPROTECT, start, end - start, prot) };
        if err::is(r) {
            fail!(r);
        }
    };
    regions::each_range(regions::read_maps(), |from, to, bits| {
        let (low, high) = (start.max(from), end.min(to));
        if low >= high {
            return;
        }
        let bit = |at: usize, letter: u8, prot: u64| if bits[at] == letter { prot } else { 0 };
        let prot = bit(0, b'r', PROT_READ) | bit(1, b'w', PROT_WRITE) | bit(2, b'x', PROT_EXEC);
        protect((from, to), prot | PROT_READ);
        f(low, high);
        protect((from, to), prot);
    });
}
