//! The supervisor's list of this process's page faults: a look at it costs a read of memory.
//!
//! It holds every write that met a fault, be it of the program or of the kernel copying to the program's memory. It does
//! not hold pages that the kernel makes writable without touching them: see `pinned`.

use super::faults::probe;
use crate::mutant::without;
use crate::scratch;
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::*;
use outlast_image::fault_list::{address_of, FaultList, ENTRIES};
use outlast_image::mutant::Mutant;

const PROT_READ: u64 = 1;
const MAP_SHARED_FIXED: u64 = 0x11;
/// A supervisor that respawns the program tells the list about the new process a moment later than the process begins.
const TRIES: u32 = 60;
const PAUSE_NS: u64 = 30_000;
/// How often an entry is looked at that is not there yet.
const LOOKS: u32 = 10_000;

/// The list, mapped.
pub struct List {
    seen: u64,
}

fn list() -> &'static FaultList {
    // SAFETY: `attach` mapped it there, as long as the structure; it consists of atomics and is only read.
    unsafe { &*(scratch::fault_list() as *const FaultList) }
}

/// The address of fault `n`, which another thread may be noting at this moment. None: it was overwritten, or it takes
/// too long.
fn await_entry(n: u64) -> Option<u64> {
    let entry = &list().addresses[n as usize % ENTRIES];
    for _ in 0..LOOKS {
        let found = address_of(entry.load(Acquire), n);
        if found.is_some() {
            return found;
        }
        core::hint::spin_loop();
    }
    None
}

impl List {
    /// Maps the list behind `fd`. None if faults of this process do not appear in it.
    pub fn attach(fd: i32) -> Option<List> {
        let (at, len) = (scratch::fault_list(), core::mem::size_of::<FaultList>());
        // SAFETY: the range is the engine's own; the list is mapped read-only.
        let r = unsafe { syscall!(nr::MMAP, at, len, PROT_READ, MAP_SHARED_FIXED, fd, 0) };
        if err::is(r) {
            return None;
        }
        for _ in 0..TRIES {
            let mut this = List { seen: list().count.load(Acquire) };
            let address = probe();
            let mut found = false;
            if this.take(&mut |a| found |= a == address) && found {
                return Some(this);
            }
            let pause = [0, PAUSE_NS];
            // SAFETY: the time lies on the stack for the length of the call.
            unsafe { syscall!(nr::NANOSLEEP, pause.as_ptr(), 0) };
        }
        None
    }

    /// Is there anything new?
    #[inline(always)]
    pub fn has_grown(&self) -> bool {
        list().count.load(Acquire) != self.seen
    }

    /// Gives `f` what is new. False: some of it was overwritten already.
    pub fn take(&mut self, f: &mut dyn FnMut(u64)) -> bool {
        let (from, to) = (self.seen, list().count.load(Acquire));
        self.seen = to;
        if to.wrapping_sub(from) > ENTRIES as u64 {
            return false;
        }
        let mut n = from;
        while n != to {
            let Some(address) = await_entry(n) else { return false };
            if !(without(Mutant::ListedFault) && n % 64 == 0) {
                f(address);
            }
            n = n.wrapping_add(1);
        }
        // Faults of the engine while it looked may have gone round.
        list().count.load(Acquire).wrapping_sub(from) <= ENTRIES as u64
    }

    /// Is there one like that among what is new?
    pub fn has(&self, mut f: impl FnMut(u64) -> bool) -> bool {
        let mut found = false;
        let mut copy = List { seen: self.seen };
        !copy.take(&mut |address| found |= f(address)) || found
    }

    /// Passes over what is new.
    pub fn skip(&mut self) {
        self.seen = list().count.load(Acquire);
    }
}
