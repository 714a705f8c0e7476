//! Memory that is to stay in RAM (mlock). The program's future mappings are locked by the engine: the kernel would lock the
//! engine's as well, and the store's hundreds of gigabytes of addresses among them.

use crate::calls::memory::hits_engine;
use crate::dispatch::{native, Call};
use crate::locked;
use crate::regions;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use outlast_image::kernel::locking;
use outlast_image::region::backing;

const MLOCK: u64 = 149;
const MUNLOCK: u64 = 150;
const MLOCKALL: u64 = 151;
const MUNLOCKALL: u64 = 152;
const MLOCK2: u64 = 325;
const MCL_CURRENT: u64 = 1;
const MCL_FUTURE: u64 = 2;
const MCL_ONFAULT: u64 = 4;
const MAP_LOCKED: u64 = 0x2000;
const RLIMIT_MEMLOCK: u64 = 8;
const CAP_IPC_LOCK: u32 = 1 << 14;
const CAPGET: u64 = 125;
const CAPABILITY_VERSION: u32 = 0x2008_0522;

pub fn is_one(call: &Call) -> bool {
    matches!(call.nr, MLOCK | MUNLOCK | MLOCKALL | MUNLOCKALL | MLOCK2)
}

pub fn serve(e: &mut Engine, call: &Call) -> i64 {
    let flags = call.args[0];
    if !matches!(call.nr, MLOCKALL | MUNLOCKALL) && hits_engine(call.args[0], call.args[1]) {
        return err::ENOMEM;
    }
    note(e, e.kernel.locking | locking::USED);
    match call.nr {
        MLOCKALL if (1..8).contains(&flags) && flags != MCL_ONFAULT => lock_all(e, flags),
        MUNLOCKALL => {
            note(e, locking::USED);
            native(call)
        }
        // What is not valid, the kernel refuses. Of the others it sees to what they may lock.
        _ => native(call),
    }
}

fn note(e: &mut Engine, now: u32) {
    e.kernel_dirty |= e.kernel.locking != now;
    e.kernel.locking = now;
}

fn lock_all(e: &mut Engine, flags: u64) -> i64 {
    let heap = (e.kernel.start_brk, e.kernel.brk);
    let limit = limit();
    if limit == 0 {
        return err::EPERM;
    }
    let text = regions::read_maps();
    let mut size = 0;
    regions::for_each_mapping(text, heap, |m| size += m.region.end - m.region.start);
    if flags & MCL_CURRENT != 0 && size > limit {
        return err::ENOMEM;
    }
    let future = if flags & MCL_FUTURE != 0 { locking::FUTURE } else { 0 };
    let on_fault = if flags & (MCL_FUTURE | MCL_ONFAULT) == MCL_FUTURE | MCL_ONFAULT { locking::ON_FAULT } else { 0 };
    note(e, locking::USED | future | on_fault);
    if flags & MCL_CURRENT != 0 {
        regions::for_each_mapping(text, heap, |m| {
            if m.region.backing != backing::KERNEL {
                // As the kernel does it: what cannot be filled is locked all the same.
                locked::lock(m.region.start, m.region.end, flags & MCL_ONFAULT != 0);
            }
        });
    }
    0
}

/// How many bytes the program may lock.
fn limit() -> u64 {
    let (mut limit, header, mut data) = ([0u64; 2], [CAPABILITY_VERSION, 0], [0u32; 6]);
    // SAFETY: both calls ask only.
    unsafe {
        syscall!(nr::PRLIMIT64, 0, RLIMIT_MEMLOCK, 0, limit.as_mut_ptr());
        syscall!(CAPGET, header.as_ptr(), data.as_mut_ptr());
    }
    if data[0] & CAP_IPC_LOCK != 0 {
        u64::MAX
    } else {
        limit[0]
    }
}

/// The mmap that the kernel would make of it.
pub fn of_mmap(e: &mut Engine, call: &Call) -> Call {
    let mut call = *call;
    if e.kernel.locking & (locking::FUTURE | locking::ON_FAULT) == locking::FUTURE {
        call.args[3] |= MAP_LOCKED;
    }
    if call.args[3] & MAP_LOCKED != 0 {
        note(e, e.kernel.locking | locking::USED);
    }
    call
}

/// What was mapped is locked, if all is to be, and the kernel has not done it; false if the program may not lock so much.
pub fn follow_mapping(e: &Engine, start: u64, end: u64) -> bool {
    e.kernel.locking & locking::ON_FAULT == 0 || follow(e, start, end)
}

/// New memory is locked, if all is to be; false if the program may not lock so much.
pub fn follow(e: &Engine, start: u64, end: u64) -> bool {
    let on_fault = e.kernel.locking & locking::ON_FAULT != 0;
    e.kernel.locking & locking::FUTURE == 0 || !err::is(locked::lock(start, end, on_fault))
}
