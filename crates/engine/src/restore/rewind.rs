//! The quick way back in place: where the map of the process is the committed one, only the pages that were written since
//! are taken back. What was written and what is mapped are the kernel's word; what a page held is the store's. Nothing is
//! asked of the tables of a program that has just failed.

use super::memory::join_regions;
use crate::calls::segments;
use crate::own_files;
use crate::regions::{self, Mapped, Regions};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use outlast_image::layout::STORE_BASE;
use outlast_image::region::{backing, region_flag, Region};
use outlast_store::{MappedRegion, Store};

const MADV_DONTNEED: u64 = 4;
const WRITABLE: u32 = 2;

/// Takes the written pages back to the commit. False: something else than their content may have changed, and memory is
/// to be restored from nothing.
pub fn rewind(e: &mut Engine) -> bool {
    if !e.tracker.is_kernels() || e.drop_count != 0 || own_files::are_disturbed(e) {
        return false;
    }
    // SAFETY: what the heap has grown by since is given up; a heap that is smaller now is told by the map.
    unsafe { syscall!(nr::BRK, e.kernel.brk) };
    let object = join_regions(e);
    // What is locked would have to be compared as well.
    if (e.maps_dirty || e.map_changes.any()) && (e.kernel.locking != 0 || !is_mapped_as(e, object)) {
        return false;
    }
    let (store, tracker) = (e.store.as_ref(), &mut e.tracker);
    let Some(store) = store else { return false };
    let mut regions = Regions::new(object);
    let mut region = regions.next();
    let mut done = true;
    tracker.each_written(&mut |start, end| {
        let mut page = start;
        while page < end && done {
            while region.as_ref().is_some_and(|m| m.region.end <= page) {
                region = regions.next();
            }
            // What lies below the stack that was committed has no region.
            let reached = match &region {
                Some(m) if m.region.start <= page => {
                    let reached = end.min(m.region.end);
                    done &= take_back(store, &m.region, page, reached);
                    reached
                }
                other => {
                    let reached = other.as_ref().map_or(end, |m| end.min(m.region.start));
                    done &= empty(page, reached);
                    reached
                }
            };
            page = reached;
        }
    });
    if done {
        e.tracker.arm_written();
    }
    done
}

/// Is the present map the one of the commit, but for a stack that has grown?
fn is_mapped_as(e: &Engine, object: &[u8]) -> bool {
    let mut committed = Regions::new(object);
    let mut same = true;
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |now| {
        same &= committed.next().is_some_and(|then| is_same(&now, &then));
    });
    same && committed.next().is_none()
}

fn is_same(now: &Mapped<'_>, then: &Mapped<'_>) -> bool {
    let grown = now.region.backing == backing::STACK && now.region.start <= then.region.start;
    let start = if grown { now.region.start } else { then.region.start };
    now.path == then.path && bytemuck::bytes_of(&now.region) == bytemuck::bytes_of(&Region { start, ..then.region })
}

fn take_back(store: &Store<'_, MappedRegion>, region: &Region, start: u64, end: u64) -> bool {
    match region.backing {
        _ if region.flags & region_flag::GROUP != 0 => return true,
        // Others see them; what was written there stays written, as in every other recovery.
        backing::SHARED_FILE | backing::KERNEL | backing::CONTEXT => return true,
        backing::SEGMENT if !segments::is_alone(region.inode) => return true,
        _ if region.prot & WRITABLE == 0 => return false,
        _ => {}
    }
    let (mut done, mut reached) = (true, start);
    let key = if region.backing == backing::OWN_FILE { own_files::key_of(start) } else { Some(start) };
    let Some(key) = key else { return false };
    store.runs(key, key + (end - start), &mut |at, offset, len| {
        let at = at - key + start;
        done &= at == reached || clear(region, reached, at);
        // SAFETY: the frames lie in the mapped store, and the program's pages are writable.
        unsafe { core::ptr::copy_nonoverlapping((STORE_BASE + offset) as *const u8, at as *mut u8, len as usize) };
        reached = at + len;
    });
    done && (reached == end || clear(region, reached, end))
}

/// Pages that no commit holds are as they were mapped.
fn clear(region: &Region, start: u64, end: u64) -> bool {
    if !matches!(region.backing, backing::SHARED_ANONYMOUS | backing::SEGMENT | backing::OWN_FILE) {
        return empty(start, end);
    }
    // SAFETY: the pages are mapped writable, and read as zero at first.
    unsafe { core::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
    true
}

fn empty(start: u64, end: u64) -> bool {
    // SAFETY: what the pages hold came after the commit.
    !err::is(unsafe { syscall!(nr::MADVISE, start, end - start, MADV_DONTNEED) })
}
