//! The engine's working memory: anonymous, private, gone with the process.

use crate::control::fail;
use crate::sys::{err, nr, syscall};
use crate::tracker::Run;
use outlast_image::fault_list::ENTRIES;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, SCRATCH_BASE, SCRATCH_ROOM};

const MAPS: u64 = 0;
const MAPS_LEN: u64 = 16 << 20;
const REGIONS: u64 = MAPS + MAPS_LEN;
const REGIONS_LEN: u64 = 16 << 20;
const PAGES: u64 = REGIONS + REGIONS_LEN;
const PAGES_LEN: u64 = 1 << 20;
const SHADOWS: u64 = PAGES + PAGES_LEN;
/// Pages kept hot at most.
pub const HOT_PAGES: usize = 1024;
const SHADOWS_LEN: u64 = HOT_PAGES as u64 * 4096;
const OBJECT: u64 = SHADOWS + SHADOWS_LEN;
const OBJECT_LEN: u64 = 16 << 20;
const RANGES: u64 = OBJECT + OBJECT_LEN;
const RANGES_LEN: u64 = 1 << 20;
const CONTEXT: u64 = RANGES + RANGES_LEN;
const KNOWN: u64 = 55 << 20;
const KNOWN_LEN: u64 = 1 << 20;
const TRACKER: u64 = KNOWN + KNOWN_LEN;
/// Bytes of the write-protecting tracker's tables.
pub const TRACKER_LEN: u64 = 32 << 20;
const FAULTS: u64 = 88 << 20;
const KEPT_MAPS: u64 = 90 << 20;
const KEPT_MAPS_LEN: u64 = 1 << 20;
const FAULT_ADDRESSES: u64 = FAULTS + (64 << 10);
const FAULT_ADDRESSES_LEN: u64 = ENTRIES as u64 * 8;
const FAULT_SAMPLES: u64 = FAULT_ADDRESSES + FAULT_ADDRESSES_LEN;
const FAULT_PROBE: u64 = FAULT_SAMPLES + (64 << 10);
const BRANCHES: u64 = 96 << 20;
const BRANCHES_LEN: u64 = 32 << 20;
const INDEX: u64 = 128 << 20;
const INDEX_LEN: u64 = COMPARED - INDEX;
const COMPARED: u64 = SCRATCH_ROOM - COPIES_LEN - COMPARED_LEN;
const COMPARED_LEN: u64 = COPIES as u64 * 8;
const COPIES: usize = crate::own_faults::COMPARED;
const COPIES_LEN: u64 = COPIES as u64 * 4096;

const _: () = assert!(CONTEXT + 4096 <= KNOWN && TRACKER + TRACKER_LEN <= FAULTS && FAULT_PROBE < KEPT_MAPS);
const _: () = assert!(KEPT_MAPS + KEPT_MAPS_LEN <= BRANCHES);

const MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE: u64 = 0x02 | 0x20 | 0x10 | 0x4000;

/// Maps the working memory afresh: all zero.
pub fn map() {
    // SAFETY: the range is the engine's own.
    let r =
        unsafe { syscall!(nr::MMAP, SCRATCH_BASE, SCRATCH_ROOM, 3, MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE, -1i64, 0) };
    // A core dump of the program must not carry the engine's tables, nor the store.
    // SAFETY: MADV_DONTDUMP changes no content.
    unsafe { syscall!(nr::MADVISE, ENGINE_BASE, ENGINE_END - ENGINE_BASE, 16) };
    if err::is(r) {
        fail!(r);
    }
}

fn slice(offset: u64, len: u64) -> &'static mut [u8] {
    // SAFETY: the ranges are disjoint, mapped by `map` and used by one thread; each accessor has one user at a time.
    unsafe { core::slice::from_raw_parts_mut((SCRATCH_BASE + offset) as *mut u8, len as usize) }
}

/// Text of /proc/self/maps.
pub fn maps_text() -> &'static mut [u8] {
    slice(MAPS, MAPS_LEN)
}

/// The text of the last commit.
pub fn kept_maps() -> &'static mut [u8] {
    slice(KEPT_MAPS, KEPT_MAPS_LEN)
}

/// Encoded regions.
pub fn regions_object() -> &'static mut [u8] {
    slice(REGIONS, REGIONS_LEN)
}

/// What the kernel tells of pages, for the write-protecting tracker. In the place of the runs below, which it does not use.
pub fn page_vector() -> &'static mut [u8] {
    slice(PAGES, PAGES_LEN)
}

/// Output of PAGEMAP_SCAN: runs of pages that are not armed.
pub fn unarmed_runs() -> &'static mut [Run] {
    runs(0)
}

/// Output of PAGEMAP_SCAN: runs of written pages.
pub fn written_runs() -> &'static mut [Run] {
    runs(1)
}

/// Output of PAGEMAP_SCAN: runs of pages that are the program's own.
pub fn own_runs() -> &'static mut [Run] {
    runs(2)
}

fn runs(part: u64) -> &'static mut [Run] {
    const PART: u64 = PAGES_LEN / 4;
    let size = core::mem::size_of::<Run>() as u64;
    bytemuck::cast_slice_mut(slice(PAGES + part * PART, PART / size * size))
}

/// Where the list of faults is mapped.
pub fn fault_list() -> u64 {
    SCRATCH_BASE + FAULTS
}

/// Where the ring of fault samples is mapped.
pub fn fault_samples() -> u64 {
    SCRATCH_BASE + FAULT_SAMPLES
}

/// Addresses of faults, copied from where they came.
pub fn fault_addresses() -> &'static mut [u64] {
    bytemuck::cast_slice_mut(slice(FAULT_ADDRESSES, FAULT_ADDRESSES_LEN))
}

/// A page that holds nothing.
pub fn fault_probe() -> u64 {
    SCRATCH_BASE + FAULT_PROBE
}

/// An object read back from the store.
pub fn object_buffer() -> &'static mut [u8] {
    slice(OBJECT, OBJECT_LEN)
}

/// Address ranges: start and end.
pub fn ranges() -> &'static mut [(u64, u64)] {
    // SAFETY: as `slice`; any bytes are a pair of integers.
    unsafe { core::slice::from_raw_parts_mut((SCRATCH_BASE + RANGES) as *mut _, RANGES_LEN as usize / 16) }
}

/// Maps of branches in the program's code, one bit a byte: enough for 256 MiB of code.
pub fn branch_bits() -> &'static mut [u64] {
    // SAFETY: as `slice`; any bytes are integers.
    unsafe { core::slice::from_raw_parts_mut((SCRATCH_BASE + BRANCHES) as *mut u64, BRANCHES_LEN as usize / 8) }
}

/// Address of the shadow copy of hot page `i`.
pub fn shadow(i: usize) -> *mut [u8; 4096] {
    (SCRATCH_BASE + SHADOWS + i as u64 * 4096) as *mut [u8; 4096]
}

/// Of which page each of the copies below is; 0: of none.
pub fn compared_pages() -> &'static mut [u64] {
    bytemuck::cast_slice_mut(slice(COMPARED, COMPARED_LEN))
}

/// A copy of a page that is compared because the program serves its page faults.
pub fn compared_copy(i: usize) -> *mut [u8; 4096] {
    (SCRATCH_BASE + COMPARED + COMPARED_LEN + i as u64 * 4096) as *mut [u8; 4096]
}

/// Has `count` shadow copies from `first` on in memory, as far as there are so many.
pub fn expect_shadows(first: usize, count: usize) {
    const MADV_POPULATE_WRITE: u64 = 23;
    let len = count.min(HOT_PAGES.saturating_sub(first)) * 4096;
    // SAFETY: changes no content of the engine's own memory.
    unsafe { syscall!(nr::MADVISE, shadow(first), len, MADV_POPULATE_WRITE) };
}

/// What the store holds of the thread's context.
pub fn context_shadow() -> *mut [u8; 4096] {
    (SCRATCH_BASE + CONTEXT) as *mut [u8; 4096]
}

/// Ranges of addresses that the last commit of regions told of; as many as fit.
pub fn known_ranges() -> &'static mut [(u64, u64)] {
    // SAFETY: the engine's own range, zeroed at first; one user at a time.
    unsafe { core::slice::from_raw_parts_mut((SCRATCH_BASE + KNOWN) as *mut (u64, u64), KNOWN_LEN as usize / 16) }
}

/// Tables of the write-protecting tracker.
pub fn tracker() -> (u64, u64) {
    (SCRATCH_BASE + TRACKER, TRACKER_LEN)
}

/// Working memory of the store's index.
pub fn index() -> &'static mut [u8] {
    slice(INDEX, INDEX_LEN)
}
