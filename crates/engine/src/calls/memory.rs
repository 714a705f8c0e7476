//! Calls that change the address space: made as they are; the tracker and the next commit follow.

use crate::advice::{self, GUARD_INSTALL, WIPE_ON_FORK};
use crate::calls::{locking, own_pidfds, several};
use crate::commit::commit_before_call;
use crate::control::degrade;
use crate::dispatch::{native, Call};
use crate::held_files;
use crate::mutant::without;
use crate::own_faults;
use crate::own_files;
use crate::perturb;
use crate::program_rings;
use crate::regions;
use crate::rewrite;
use crate::shared_memory;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::tracker::areas::{area_flag, Area};
use crate::tracker::{Content, Track};
use crate::user;
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_image::mutant::Mutant;
use outlast_image::region::backing;

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_TYPE: u64 = 15;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_GROWSDOWN: u64 = 0x100;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MADV_DONTNEED: u64 = 4;
const MADV_FREE: u64 = 8;
const MADV_REMOVE: u64 = 9;
const MADV_POPULATE_WRITE: u64 = 23;
const MADV_DONTNEED_LOCKED: u64 = 24;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;
const MSEAL: u64 = 462;
const PROCESS_MADVISE: u64 = 440;
/// As much at most goes into one call with several ranges (MAX_RW_COUNT), and as many ranges.
const MOST_BYTES: u64 = 0x7fff_f000;
const MOST_RANGES: u64 = 1024;

fn up(n: u64) -> u64 {
    n.saturating_add(4095) & !4095
}

pub fn hits_engine(start: u64, len: u64) -> bool {
    start < ENGINE_END && start.saturating_add(len) > ENGINE_BASE
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let unmaps = call.nr == nr::MUNMAP || call.nr == nr::MMAP && call.args[3] & MAP_FIXED != 0;
    let ends_lock = unmaps && e.held.may_be_locked(call.args[0], call.args[0].saturating_add(up(call.args[1])));
    let shares = call.nr == nr::MMAP && kind(call.args[3]) & area_flag::FOREIGN != 0 && t.native == 0;
    let is_to_be_kept = shares && own_files::mapping(e, call.args[4] as i32);
    if (ends_lock || is_to_be_kept || !e.may_drop()) && t.native == 0 {
        commit_before_call(e);
    }
    if let Some(of_ring) = if call.nr == nr::MMAP { program_rings::mapping(e, call) } else { None } {
        return match of_ring {
            Ok(memory) => map_ring(e, t, call, &memory),
            Err(r) => r,
        };
    }
    let r = change(e, t, call);
    if r == err::ENOMEM && e.tracker.settle() {
        // The program has as many mappings as it would have without a tracker.
        return change(e, t, call);
    }
    r
}

/// Memory takes the place of what the program maps of a ring of its own.
fn map_ring(e: &mut Engine, t: &mut Thread, call: &Call, memory: &Call) -> i64 {
    let r = change(e, t, memory);
    if !err::is(r) {
        program_rings::note_mapping(e, call, r as u64);
    }
    r
}

fn change(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let a = call.args;
    advice::follow_growth(e, regions::read_maps);
    match call.nr {
        nr::MMAP => mmap(e, t, call),
        nr::MUNMAP if hits_engine(a[0], a[1]) => err::EINVAL,
        nr::MUNMAP => {
            let end = a[0].saturating_add(up(a[1]));
            e.cool(a[0], end);
            rewrite::unmapping(t, a[0], end);
            own_files::unmapping(e, a[0], end);
            let r = native(call);
            if r == 0 {
                rewrite::unmapped(a[0], end);
                own_files::unmapped(e, a[0], end);
                e.tracker.uncover(a[0], end);
                own_faults::forget(a[0], end);
                e.advice.unmapped(a[0], end);
                e.replaced(a[0], end);
                e.drop_range(a[0], end);
                e.map_changes.add(a[0], end);
                held_files::unmapped(e, a[0], end);
                shared_memory::unmapped(e, a[0], end);
            }
            r
        }
        nr::BRK => brk(e, call),
        nr::MPROTECT | 329 => mprotect(e, t, call),
        nr::MREMAP => mremap(e, t, call),
        nr::MADVISE => madvise(e, t, call),
        PROCESS_MADVISE if own_pidfds::is_of_self(call.args[0] as i32) => advise_oneself(e, t, call),
        MSEAL => {
            // A sealed page can neither be armed nor made writable any more.
            e.tracker.open(a[0], a[0].saturating_add(up(a[1])));
            e.maps_dirty = true;
            native(call)
        }
        _ if locking::is_one(call) => {
            e.maps_dirty = true;
            e.tracker.written_behind();
            locking::serve(e, call)
        }
        // remap_file_pages, keys …: pages may be filled, or change places.
        _ => {
            e.maps_dirty = true;
            e.tracker.written_behind();
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
        e.cool(addr, addr.saturating_add(up(len)));
        rewrite::unmapping(t, addr, addr.saturating_add(up(len)));
        own_files::unmapping(e, addr, addr.saturating_add(up(len)));
    }
    let mut room = perturb::room(addr, len, prot, flags);
    let mut call = locking::of_mmap(e, call);
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) == 0 && hits_engine(addr, len) {
        // A mere wish, and not all of the engine's range is mapped all the time.
        call.args[0] = 0;
    }
    let with_room = |room| native(&Call { args: roomy(call.args, room), ..call });
    let mut r = with_room(room);
    if room != 0 && err::is(r) {
        room = 0;
        r = with_room(room);
    }
    if !err::is(r) {
        let (start, end) = (r as u64, r as u64 + up(len) + 2 * room);
        e.advice.unmapped(start, end);
        if flags & MAP_GROWSDOWN != 0 {
            e.advice.grows(start, end);
        }
        own_faults::forget(start, end);
        if flags & MAP_FIXED != 0 {
            rewrite::unmapped(start, end);
            own_files::unmapped(e, start, end);
            e.tracker.uncover(start, end);
            e.replaced(start, end);
            e.drop_range(start, end);
            held_files::unmapped(e, start, end);
            shared_memory::unmapped(e, start, end);
        }
        e.map_changes.add(start, end);
        let mut kind = kind(flags);
        if kind & area_flag::FOREIGN != 0 {
            let (fd, offset) = (call.args[4] as i32, call.args[5]);
            held_files::mapped(e, fd, (start, end));
            if own_files::mapped(e, fd, (start, end), offset) {
                kind = kind & !area_flag::FOREIGN | area_flag::SHARED;
            } else if !shared_memory::undone::mapped(e, fd, (start, end), offset, prot as u32 & 7)
                && prot & PROT_WRITE != 0
            {
                degrade(Degradation::SharedMapping);
            }
        }
        e.tracker.cover(&Area { start, end, prot: prot as u32 & 7, flags: kind }, Content::Fresh);
        if !locking::follow_mapping(e, start, end) {
            change(e, t, &Call { nr: nr::MUNMAP, args: [start, end - start, 0, 0, 0, 0] });
            return err::EAGAIN;
        }
        return r + room as i64;
    }
    r
}

/// The arguments of mmap with room on either side.
fn roomy(mut args: [u64; 6], room: u64) -> [u64; 6] {
    if room != 0 {
        args[1] = up(args[1]).saturating_add(2 * room);
    }
    args
}

/// Flags of an area mapped with `flags`.
fn kind(flags: u64) -> u32 {
    let shared = matches!(flags & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE);
    let kind = match (shared, flags & MAP_ANONYMOUS != 0) {
        (true, true) => area_flag::SHARED,
        (true, false) => area_flag::FOREIGN,
        (false, true) => 0,
        (false, false) => area_flag::FILE,
    };
    kind | if flags & MAP_GROWSDOWN != 0 { area_flag::GROWSDOWN } else { 0 }
}

fn brk(e: &mut Engine, call: &Call) -> i64 {
    let old = e.kernel.brk;
    if call.args[0] < old && call.args[0] >= e.kernel.start_brk {
        e.cool(up(call.args[0]), up(old));
    }
    let now = native(call);
    let new = now as u64;
    if up(new) > up(old) && !locking::follow(e, up(old), up(new)) {
        return native(&Call { nr: nr::BRK, args: [old, 0, 0, 0, 0, 0] });
    }
    if new != old {
        if up(new) > up(old) {
            let heap = Area { start: up(old), end: up(new), prot: (PROT_READ | PROT_WRITE) as u32, flags: 0 };
            e.tracker.cover(&heap, Content::Fresh);
        } else {
            e.tracker.uncover(up(new), up(old));
            own_faults::forget(up(new), up(old));
            e.advice.unmapped(up(new), up(old));
            e.replaced(up(new), up(old));
            e.drop_range(up(new), up(old));
        }
        e.kernel.brk = new;
        e.kernel_dirty = true;
        e.map_changes.add(up(new.min(old)), up(new.max(old)));
    }
    now
}

fn mprotect(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [addr, len, prot, ..] = call.args;
    if hits_engine(addr, len) {
        return err::ENOMEM;
    }
    let end = addr.saturating_add(up(len));
    e.cool(addr, end);
    // What was written there since the last commit could not be read any more. A child that shares this memory has no state to
    // commit.
    let unsaved = prot & PROT_READ == 0 && t.native == 0 && e.tracker.may_be_written(addr, end);
    if unsaved && commit_before_call(e) != 0 {
        e.arm_hot(addr, end);
    }
    if !rewrite::protecting(addr, end, prot & PROT_WRITE != 0) {
        return err::ENOMEM;
    }
    let r = e.tracker.protect(call);
    if r == 0 {
        shared_memory::protected(e, addr, end, prot as u32 & 7);
    }
    // Also a call that failed may have changed a part.
    e.map_changes.add(addr, end);
    r
}

fn mremap(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [old, old_len, new_len, flags, fixed, _] = call.args;
    if hits_engine(old, old_len) || flags & MREMAP_FIXED != 0 && hits_engine(fixed, new_len) {
        return err::EINVAL;
    }
    let (old_len, new_len) = (up(old_len), up(new_len));
    let old_end = old.saturating_add(old_len);
    e.cool(old, old_end);
    if flags & MREMAP_FIXED != 0 {
        e.cool(fixed, fixed.saturating_add(new_len));
    }
    // Clean pages of a lazily restored region are the store's, by their old address: make them the process's own.
    let lazy = e.is_lazy(old, old_end);
    e.tracker.before_move((old, old_end), lazy);
    if lazy && e.own_pages(old, old_end) {
        e.replaced(old, old_end);
    }
    if !rewrite::changing(old, old_end) {
        return err::ENOMEM;
    }
    rewrite::unmapping(t, old, old_end);
    own_files::unmapping(e, old, old_end);
    if flags & MREMAP_FIXED != 0 {
        rewrite::unmapping(t, fixed, fixed.saturating_add(new_len));
        own_files::unmapping(e, fixed, fixed.saturating_add(new_len));
    }
    let mut r = native(call);
    if r == err::EFAULT && flags == MREMAP_MAYMOVE | MREMAP_FIXED && old_len == new_len && several::can_be_moved() {
        r = several::move_each((old, old_end), fixed);
    }
    if err::is(r) && lazy {
        e.tracker.moved((old, old_end), (old, old_end), true);
    }
    if !err::is(r) {
        let new = r as u64;
        e.replaced(new, new + new_len);
        if new != old {
            rewrite::unmapped(new, new + new_len);
        }
        own_faults::moved((old, old_end), (new, new + new_len), flags & MREMAP_DONTUNMAP != 0);
        e.tracker.moved((old, old_end), (new, new + new_len), flags & MREMAP_DONTUNMAP != 0);
        e.held.moved((old, old_end), (new, new + new_len));
        let keeps_old = flags & MREMAP_DONTUNMAP != 0 || old_len == 0;
        own_files::moved(e, (old, old_end), (new, new + new_len), keeps_old);
        shared_memory::moved(e, (old, old_end), (new, new + new_len), flags & MREMAP_DONTUNMAP != 0);
        e.advice.moved((old, old_end), (new, new + new_len), flags & MREMAP_DONTUNMAP != 0);
        if new != old && flags & MREMAP_DONTUNMAP == 0 {
            e.drop_range(old, old_end);
        } else if new_len < old_len {
            e.drop_range(old + new_len, old_end);
        } else if flags & MREMAP_DONTUNMAP != 0 {
            e.drop_range(old, old_end);
        }
        if new != old {
            e.drop_range(new, new + new_len);
        }
        e.maps_dirty = true;
    }
    r
}

fn madvise(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [addr, len, advice, ..] = call.args;
    let end = addr.saturating_add(up(len));
    if hits_engine(addr, len) {
        return err::EINVAL;
    }
    if matches!(advice, MADV_REMOVE | MADV_POPULATE_WRITE) {
        // Refused where the program may not write.
        e.tracker.open(addr, end);
        if t.native == 0 {
            shared_memory::undone::open_all(e, addr, end);
        }
    }
    if matches!(advice, WIPE_ON_FORK | GUARD_INSTALL) && e.is_lazy(addr, end) && e.own_pages(addr, end) {
        // To the kernel it was a mapping of a file.
        e.replaced(addr, end);
    }
    match advice {
        MADV_DONTNEED | MADV_DONTNEED_LOCKED | MADV_FREE | MADV_REMOVE | GUARD_INSTALL => {
            let stays = is_giving_up(advice) && is_shared(e, addr, end);
            e.cool(addr, end);
            // What was written there since the last commit would not be found where nothing is mapped.
            if stays && t.native == 0 && commit_before_call(e) != 0 {
                e.arm_hot(addr, end);
            }
            if !rewrite::changing(addr, end) {
                return err::ENOMEM;
            }
            let lazy = e.is_lazy(addr, end);
            if lazy && advice != MADV_FREE {
                return discard_lazy(e, addr, end, call);
            }
            let r = native(call);
            if r == 0 {
                e.advice.given(addr, end, advice);
            }
            if lazy && r == err::EINVAL && addr % 4096 == 0 {
                // What is mapped from the store is no anonymous memory to the kernel. Pages may also stay as they are.
                return 0;
            }
            let until = discarded_until(addr, end, advice, r);
            if advice == MADV_REMOVE {
                own_files::content_changed(e, addr, end);
            }
            if !stays && advice != MADV_FREE && until > addr {
                e.drop_range(addr, until);
                own_faults::content_changed();
            }
            r
        }
        // MADV_POPULATE_WRITE and the like make pages writable.
        _ => {
            e.maps_dirty = true;
            let r = native(call);
            // ENOMEM: of what is mapped there it holds.
            if r == 0 || r == err::ENOMEM {
                e.advice.given(addr, end, advice);
            }
            e.tracker.written_by_kernel(addr, end);
            r
        }
    }
}

/// Any advice on the program's own memory (Linux 6.13): as madvise does it, range by range. The bytes it was taken for.
fn advise_oneself(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [fd, vector, count, advice, flags, _] = call.args;
    let nothing = [0u64; 2];
    let refused = native(&Call { args: [fd, nothing.as_ptr() as u64, 1, advice, flags, 0], ..*call });
    if err::is(refused) {
        return refused;
    }
    if count > MOST_RANGES {
        return err::EINVAL;
    }
    let (mut done, mut r) = (0, 0);
    for n in 0..count {
        let Some([start, len]) = user::read::<[u64; 2]>(vector + 16 * n) else {
            r = err::EFAULT;
            break;
        };
        let len = len.min(MOST_BYTES - done);
        r = madvise(e, t, &Call { nr: nr::MADVISE, args: [start, len, advice, 0, 0, 0] });
        if err::is(r) {
            break;
        }
        done += len;
    }
    match done {
        0 => r,
        done => done as i64,
    }
}

/// Up to where a call that returned `r` has given up what the range held. It may have done so with a part of it and then failed.
fn discarded_until(start: u64, end: u64, advice: u64, r: i64) -> u64 {
    match r {
        0 => return end,
        _ if !is_giving_up(advice) => return start,
        // Something is not mapped; what is, it was done with.
        err::ENOMEM => return end,
        err::EINVAL if start % 4096 == 0 => {}
        _ => return start,
    }
    let (mut reached, mut failed) = (start, false);
    regions::for_each_mapping(regions::read_maps(), (0, 0), |m| {
        let (low, high) = (m.region.start.max(start), m.region.end.min(end));
        if low < high && !failed {
            // SAFETY: the kernel has done that already, up to the mapping that it refuses.
            failed = unsafe { syscall!(nr::MADVISE, low, high - low, advice) } != 0;
            reached = if failed { reached } else { high };
        }
    });
    reached
}

fn is_giving_up(advice: u64) -> bool {
    matches!(advice, MADV_DONTNEED | MADV_DONTNEED_LOCKED)
}

/// Is all of a range shared memory of the program's own? MADV_DONTNEED unmaps it, but its content stays.
fn is_shared(e: &Engine, start: u64, end: u64) -> bool {
    let mut reached = start;
    if e.tracker.may_be_shared(start, end) {
        regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
            let r = m.region;
            let is_shared = matches!(r.backing, backing::SHARED_ANONYMOUS | backing::SEGMENT | backing::OWN_FILE);
            if is_shared && r.start <= reached && r.end > reached {
                reached = r.end;
            }
        });
    }
    reached >= end
}

/// In a lazily restored region MADV_DONTNEED would expose what the store holds: fresh memory takes the place of the pages.
fn discard_lazy(e: &mut Engine, start: u64, end: u64, call: &Call) -> i64 {
    let r = native(call);
    let end = discarded_until(start, end, call.args[2], r);
    if end <= start || without(Mutant::LazyDiscard) {
        return r;
    }
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        let (low, high, prot) = (m.region.start.max(start), m.region.end.min(end), m.region.prot);
        // SAFETY: what is replaced has just been given up.
        if low < high
            && e.is_lazy(low, high)
            && !err::is(unsafe { syscall!(nr::MMAP, low, high - low, prot, flags, -1i64, 0) })
        {
            e.tracker.cover(&Area { start: low, end: high, prot, flags: 0 }, Content::Fresh);
        }
    });
    e.replaced(start, end);
    e.advice.give_again(start, end);
    e.drop_range(start, end);
    e.maps_dirty = true;
    r
}
