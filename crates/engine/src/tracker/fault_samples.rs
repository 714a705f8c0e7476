//! A perf event that notes the address of each page fault of this thread. An ordinary user may have it where
//! `kernel.perf_event_paranoid` is at most 2, though then without the faults that the kernel meets on the thread's behalf.

use super::faults::probe;
use crate::call_filters;
use crate::scratch;
use crate::sys::{err, nr, syscall};
use core::sync::atomic::{AtomicU64, Ordering::*};
use outlast_filter::needs::wish;

const PERF_EVENT_OPEN: u64 = 298;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const TYPE_SOFTWARE: u32 = 1;
/// Minor faults: exactly those that are counted as such, no attempts that fail.
const SW_PAGE_FAULTS_MIN: u64 = 5;
const SAMPLE_ADDR: u64 = 1 << 3;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const RECORD_SAMPLE: u32 = 9;

/// Bytes of the ring of samples, behind a page of the kernel's.
const RING: u64 = 8 * 4096;
/// All the room that is mapped.
pub const LEN: u64 = 4096 + RING;
/// Offsets in the kernel's page.
const DATA_HEAD: u64 = 1024;
const DATA_TAIL: u64 = 1032;
/// With less room than this, samples may have been dropped.
const LAST: u64 = 64;

/// `struct perf_event_attr`, as far as it is used.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    type_: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    rest: [u64; 8],
}

/// The event's ring.
pub struct Samples;

fn word(offset: u64) -> &'static AtomicU64 {
    // SAFETY: `attach` mapped the ring there; the kernel's page and the ring hold aligned words.
    unsafe { &*((scratch::fault_samples() + offset) as *const AtomicU64) }
}

impl Samples {
    /// Opens the event as descriptor `fd`. None where that is not allowed.
    pub fn attach(fd: i32) -> Option<Samples> {
        let r = [0, EXCLUDE_KERNEL].into_iter().map(open).find(|r| !err::is(*r))?;
        // SAFETY: the new descriptor moves to a number that is the engine's; the range is the engine's own.
        unsafe {
            let moved = syscall!(nr::DUP3, r, fd, 0o2000000);
            syscall!(nr::CLOSE, r);
            if err::is(moved) || err::is(syscall!(nr::MMAP, scratch::fault_samples(), LEN, 3, 0x11, fd, 0)) {
                syscall!(nr::CLOSE, fd);
                return None;
            }
        }
        let (mut this, mut found) = (Samples, false);
        let address = probe();
        if this.take(&mut |a| found |= a == address).is_some() && found {
            return Some(this);
        }
        // SAFETY: the descriptor is the engine's.
        unsafe { syscall!(nr::CLOSE, fd) };
        None
    }

    /// Gives `f` what is new, and returns how many that were. None: some were dropped.
    pub fn take(&mut self, f: &mut dyn FnMut(u64)) -> Option<u64> {
        let (mut at, head) = (word(DATA_TAIL).load(Relaxed), word(DATA_HEAD).load(Acquire));
        let mut complete = head.wrapping_sub(at) <= RING - LAST;
        let mut count = 0;
        while at != head && complete {
            // type: u32, misc: u16, size: u16; then the address.
            let header = word(4096 + at % RING).load(Relaxed);
            complete = header as u32 == RECORD_SAMPLE && header >> 48 == 16;
            f(word(4096 + (at + 8) % RING).load(Relaxed));
            count += 1;
            at += 16;
        }
        self.skip();
        complete.then_some(count)
    }

    /// Passes over what is new.
    pub fn skip(&mut self) {
        word(DATA_TAIL).store(word(DATA_HEAD).load(Acquire), Release);
    }
}

fn open(exclude: u64) -> i64 {
    if !call_filters::permit(wish::PERF_EVENT_OPEN) {
        return err::EPERM;
    }
    let attributes = Attributes {
        type_: TYPE_SOFTWARE,
        size: core::mem::size_of::<Attributes>() as u32,
        config: SW_PAGE_FAULTS_MIN,
        sample_period: 1,
        sample_type: SAMPLE_ADDR,
        flags: exclude | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC,
        ..Default::default()
    };
    // SAFETY: the kernel reads the attributes, which say how long they are. For this thread, on whatever processor.
    unsafe { syscall!(PERF_EVENT_OPEN, &raw const attributes, 0, -1i64, -1i64, PERF_FLAG_FD_CLOEXEC) }
}
