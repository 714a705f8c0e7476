//! What of the program's memory is locked: by the kernel's word, as of a commit, and locked again in a restored process.

use crate::control::degrade;
use crate::regions::Regions;
use crate::sys::{err, syscall};
use crate::vm_flags;
use core::mem::{offset_of, size_of};
use outlast_image::degradation::Degradation;
use outlast_image::region::{region_flag, Region};

const MLOCK2: u64 = 325;
const MLOCK_ONFAULT: u64 = 1;

pub fn lock(start: u64, end: u64, on_fault: bool) -> i64 {
    // SAFETY: the content of the program's memory stays.
    unsafe { syscall!(MLOCK2, start, end - start, if on_fault { MLOCK_ONFAULT } else { 0 }) }
}

/// Marks the regions of an encoded object that are locked.
pub fn mark(object: &mut [u8]) {
    let mut at = 0;
    each(&mut |start, end, flags| {
        while let Some(head) = object.get(at..at + size_of::<Region>()) {
            let region: Region = bytemuck::pod_read_unaligned(head);
            if region.start >= end {
                break;
            }
            if region.start >= start {
                let place = at + offset_of!(Region, flags);
                object[place..place + 4].copy_from_slice(&(region.flags | flags).to_ne_bytes());
            }
            at += size_of::<Region>() + region.path_len as usize;
        }
    });
}

/// Calls `f` with every locked mapping, in ascending order.
fn each(f: &mut dyn FnMut(u64, u64, u32)) {
    vm_flags::each(&mut |start, end, marks| {
        if vm_flags::has(marks, b"lo") {
            // Kernels that have no name for locking on fault show what they have no name for so.
            let is_on_fault = vm_flags::has(marks, b"lf") || vm_flags::has(marks, b"??");
            f(start, end, region_flag::LOCKED | if is_on_fault { region_flag::ON_FAULT } else { 0 });
        }
    });
}

/// Locks what was locked at the commit.
pub fn restore(object: &[u8]) {
    for region in Regions::new(object).map(|m| m.region).filter(|r| r.flags & region_flag::LOCKED != 0) {
        let r = lock(region.start, region.end, region.flags & region_flag::ON_FAULT != 0);
        // What the program may not touch cannot be filled, but is locked.
        if err::is(r) && region.prot != 0 {
            degrade(Degradation::MemoryLock);
        }
    }
}
