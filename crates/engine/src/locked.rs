//! What of the program's memory is locked: by the kernel's word, as of a commit, and locked again in a restored process. A range need not
//! be one of the regions: the program locks what it likes of a mapping.

use crate::control::degrade;
use crate::regions::Regions;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, syscall};
use crate::vm_flags;
use bytemuck::{Pod, Zeroable};
use core::mem::size_of;
use outlast_image::degradation::Degradation;
use outlast_store::{MappedRegion, Store};

const MLOCK2: u64 = 325;
const MLOCK_ONFAULT: u64 = 1;
/// Ranges at most.
const MOST: usize = 1024;

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Locked {
    start: u64,
    end: u64,
    /// Not 0: only what is touched.
    is_on_fault: u64,
}

pub fn lock(start: u64, end: u64, on_fault: bool) -> i64 {
    // SAFETY: the content of the program's memory stays.
    unsafe { syscall!(MLOCK2, start, end - start, if on_fault { MLOCK_ONFAULT } else { 0 }) }
}

/// Puts it into the commit.
pub fn save(store: &mut Store<MappedRegion>) {
    let buf: &mut [Locked] = bytemuck::cast_slice_mut(&mut scratch::object_buffer()[..MOST * size_of::<Locked>()]);
    let mut count = 0;
    vm_flags::each(&mut |start, end, marks| {
        if !vm_flags::has(marks, b"lo") {
            return;
        }
        // Kernels that have no name for locking on fault show what they have no name for so.
        let is_on_fault = (vm_flags::has(marks, b"lf") || vm_flags::has(marks, b"??")).into();
        match buf[..count].last_mut() {
            // A tracker may have made several mappings of one.
            Some(last) if last.end == start && last.is_on_fault == is_on_fault => last.end = end,
            _ if count == MOST => degrade(Degradation::MemoryLock),
            _ => {
                buf[count] = Locked { start, end, is_on_fault };
                count += 1;
            }
        }
    });
    store.put(object::LOCKS, 0, bytemuck::cast_slice(&buf[..count]));
}

/// Locks what was locked at the commit, of which `regions` are the object.
pub fn restore(e: &mut Engine, regions: &[u8]) {
    let buf = scratch::object_buffer();
    let len = e.store().object(object::LOCKS, 0, buf).unwrap_or(0).min(buf.len());
    for bytes in buf[..len].chunks_exact(size_of::<Locked>()) {
        let locked: Locked = bytemuck::pod_read_unaligned(bytes);
        for region in Regions::new(regions).map(|m| m.region) {
            let (start, end) = (region.start.max(locked.start), region.end.min(locked.end));
            // What the program may not touch cannot be filled, but is locked.
            if start < end && err::is(lock(start, end, locked.is_on_fault != 0)) && region.prot != 0 {
                degrade(Degradation::MemoryLock);
            }
        }
    }
}
