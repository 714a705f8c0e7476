//! Calls that change the address space: made as they are; the tracker and the next commit follow.

use crate::commit::commit_at_gate;
use crate::control::degrade;
use crate::dispatch::{native, Call};
use crate::rewrite;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::tracker::Track;
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const MAP_SHARED: u64 = 1;
const MAP_TYPE: u64 = 15;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MADV_DONTNEED: u64 = 4;
const MADV_FREE: u64 = 8;
const MADV_REMOVE: u64 = 9;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;

fn up(n: u64) -> u64 {
    n.saturating_add(4095) & !4095
}

fn hits_engine(start: u64, len: u64) -> bool {
    start < ENGINE_END && start.saturating_add(len) > ENGINE_BASE
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let a = call.args;
    match call.nr {
        nr::MMAP => mmap(e, t, call),
        nr::MUNMAP if hits_engine(a[0], a[1]) => err::EINVAL,
        nr::MUNMAP => {
            let end = a[0].saturating_add(up(a[1]));
            e.hot.forget(a[0], end);
            rewrite::unmapping(t, a[0], end);
            let r = native(call);
            if r == 0 {
                rewrite::unmapped(a[0], end);
                e.drop_range(a[0], a[0] + up(a[1]));
                e.maps_dirty = true;
            }
            r
        }
        nr::BRK => brk(e, call),
        nr::MPROTECT | 329 => mprotect(e, call),
        nr::MREMAP => mremap(e, t, call),
        nr::MADVISE => madvise(e, call),
        _ => {
            e.maps_dirty = true;
            native(call)
        }
    }
}

fn mmap(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [addr, len, prot, flags, ..] = call.args;
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 && hits_engine(addr, len) {
        return if flags & MAP_FIXED != 0 { err::ENOMEM } else { err::EEXIST };
    }
    if flags & MAP_FIXED != 0 {
        e.hot.forget(addr, addr.saturating_add(up(len)));
        rewrite::unmapping(t, addr, addr.saturating_add(up(len)));
    }
    let r = native(call);
    if !err::is(r) {
        let (start, end) = (r as u64, r as u64 + up(len));
        if flags & MAP_FIXED != 0 {
            rewrite::unmapped(start, end);
            e.drop_range(start, end);
        }
        e.maps_dirty = true;
        if flags & MAP_TYPE == MAP_SHARED && flags & MAP_ANONYMOUS == 0 {
            if prot & PROT_WRITE != 0 {
                degrade(Degradation::SharedMapping);
            }
        } else if prot & PROT_WRITE != 0 {
            e.tracker.cover(start, end);
        }
    }
    r
}

fn brk(e: &mut Engine, call: &Call) -> i64 {
    let old = e.kernel.brk;
    if call.args[0] < old && call.args[0] >= e.kernel.start_brk {
        e.hot.forget(up(call.args[0]), up(old));
    }
    let now = native(call);
    let new = now as u64;
    if new != old {
        if new > old {
            e.tracker.cover(old & !4095, up(new));
        } else {
            e.drop_range(up(new), up(old));
        }
        e.kernel.brk = new;
        e.kernel_dirty = true;
        e.maps_dirty = true;
    }
    now
}

fn mprotect(e: &mut Engine, call: &Call) -> i64 {
    let [addr, len, prot, ..] = call.args;
    if hits_engine(addr, len) {
        return err::ENOMEM;
    }
    if prot & PROT_READ == 0 {
        // What was written there since the last commit could not be read any more.
        commit_at_gate(e);
    }
    let end = addr.saturating_add(up(len));
    e.hot.forget(addr, end);
    if !rewrite::protecting(addr, end, prot & PROT_WRITE != 0) {
        return err::ENOMEM;
    }
    let r = native(call);
    e.maps_dirty = true;
    if prot & PROT_WRITE != 0 {
        e.tracker.cover(addr & !4095, addr.saturating_add(up(len)));
    }
    e.tracker.force();
    r
}

fn mremap(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [old, old_len, new_len, flags, fixed, _] = call.args;
    if hits_engine(old, old_len) || flags & MREMAP_FIXED != 0 && hits_engine(fixed, new_len) {
        return err::EINVAL;
    }
    let (old_len, new_len) = (up(old_len), up(new_len));
    e.hot.forget(old, old + old_len);
    // Clean pages of a lazily restored region are the store's, by their old address: make them the process's own.
    e.own_pages(old, old + old_len);
    if !rewrite::changing(old, old + old_len) {
        return err::ENOMEM;
    }
    rewrite::unmapping(t, old, old + old_len);
    if flags & MREMAP_FIXED != 0 {
        rewrite::unmapping(t, fixed, fixed.saturating_add(new_len));
    }
    let r = native(call);
    if !err::is(r) {
        let new = r as u64;
        if new != old {
            rewrite::unmapped(new, new + new_len);
        }
        if new != old && flags & MREMAP_DONTUNMAP == 0 {
            e.drop_range(old, old + old_len);
        } else if new_len < old_len {
            e.drop_range(old + new_len, old + old_len);
        } else if flags & MREMAP_DONTUNMAP != 0 {
            e.drop_range(old, old + old_len);
        }
        if new != old {
            e.drop_range(new, new + new_len);
        }
        e.maps_dirty = true;
        // Moving takes a region out of the tracker's care.
        e.tracker.cover(new, new + new_len);
    }
    r
}

fn madvise(e: &mut Engine, call: &Call) -> i64 {
    let [addr, len, advice, ..] = call.args;
    let end = addr.saturating_add(up(len));
    if hits_engine(addr, len) {
        return err::EINVAL;
    }
    match advice {
        MADV_DONTNEED | MADV_FREE | MADV_REMOVE => {
            e.hot.forget(addr, end);
            if !rewrite::changing(addr, end) {
                return err::ENOMEM;
            }
            if e.is_lazy(addr, end) {
                return discard_lazy(e, addr, end, call);
            }
            let r = native(call);
            if r == 0 && advice != MADV_FREE {
                e.drop_range(addr, end);
            }
            r
        }
        _ => {
            e.maps_dirty = true;
            native(call)
        }
    }
}

/// In a lazily restored region MADV_DONTNEED would expose what the store holds: the pages are zeroed instead.
fn discard_lazy(_e: &mut Engine, start: u64, end: u64, call: &Call) -> i64 {
    let r = native(call);
    if r == 0 {
        let mut p = start;
        while p < end {
            // Guarded: what is not writable now cannot be zeroed, and keeps its old content.
            crate::user::write_bytes(p, &[0; 4096]);
            p += 4096;
        }
    }
    r
}
