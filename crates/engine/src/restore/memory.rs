//! The address space goes back to the commit.
//!
//! Large anonymous regions are mapped privately over the store's frames, so that gigabytes resume at once; holes there
//! read as zero, which is what a page that was never stored holds. Small ones are copied.

use super::image;
use super::mapped_file::{map_file, Last};
use crate::calls::segments::{self, Bringing};
use crate::control::{self, degrade, fail};
use crate::kept_files;
use crate::locked;
use crate::own_faults;
use crate::own_files;
use crate::regions::{self, Mapped, Regions};
use crate::rewrite::CodeMemory;
use crate::scratch;
use crate::shared_memory;
use crate::state::{object, Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::tracker::Track;
use crate::user;
use outlast_image::control::unreadable;
use outlast_image::degradation::Degradation;
use outlast_image::inject::option;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, STORE_BASE, USER_END};
use outlast_image::region::{backing, region_flag, Region};

const READ_WRITE: u64 = 1 | 2;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_GROWSDOWN: u64 = 0x100;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_HUGETLB: u64 = 0x4_0000;
/// What the kernel calls private memory of huge pages.
const HUGE_PAGES: &[u8] = b"/anon_hugepage";
/// Regions of at least this many bytes are mapped lazily.
const LAZY_FROM: u64 = 1 << 20;

/// What the regions mapped so far leave for the next.
struct Came<'a> {
    last: Last<'a>,
    bringing: Bringing,
    /// All regions.
    object: &'a [u8],
}

/// Replaces the present address space by the committed one.
pub fn restore(e: &mut Engine) {
    let mut stack = (0, 0);
    let object = join_regions(e);
    let stack_end = image::stack_end(object);
    // A break above the committed one can only be lowered while the heap is still mapped.
    // SAFETY: nothing of the present heap is needed any more.
    unsafe { syscall!(nr::BRK, e.kernel.brk) };
    let text = regions::read_maps();
    regions::for_each(text, (0, 0), |m| match m.region.backing {
        backing::KERNEL => {}
        backing::STACK if m.region.end == stack_end => stack = (m.region.start, m.region.end),
        // SAFETY: nobody uses the old program's memory any more.
        backing::PRIVATE_FILE | backing::SHARED_FILE
            if is_nameless(&m.region) && unsafe { kept_files::adopt(&m.region) } => {}
        _ => unmap(m.region.start, m.region.end),
    });
    image::move_kernel_mappings(e);
    image::set_bounds(e);
    e.lazy_count = 0;
    shared_memory::forget(e);
    segments::reset();
    let mut came = Came { last: Last::default(), bringing: Bringing::default(), object };
    own_files::forget_views();
    for m in Regions::new(object) {
        if !plausible(&m.region) {
            control::unreadable(unreadable::DAMAGED);
        }
        map(e, &m, stack, &mut came);
    }
    came.bringing.end();
    own_files::fill(e);
    kept_files::leave();
    e.advice.give_again(0, USER_END);
    if e.kernel.locking != 0 {
        locked::restore(e, object);
    }
}

/// The store is untrusted: a region must lie in user space and outside the engine.
fn plausible(r: &Region) -> bool {
    r.start % 4096 == 0
        && r.end % 4096 == 0
        && r.start >= 0x1000
        && (r.end <= USER_END || r.backing == backing::KERNEL)
        && (r.end <= ENGINE_BASE || r.start >= ENGINE_END)
}

fn is_nameless(r: &Region) -> bool {
    r.flags & region_flag::DELETED != 0
}

fn unmap(start: u64, end: u64) {
    // SAFETY: nothing of the old program's memory is needed any more.
    let r = unsafe { syscall!(nr::MUNMAP, start, end - start) };
    if err::is(r) {
        fail!(r);
    }
}

/// The pieces of the encoded regions, joined in the scratch buffer.
pub fn join_regions(e: &mut Engine) -> &'static [u8] {
    let out = scratch::regions_object();
    let (mut n, mut key) = (0, 0);
    while let Some(len) = e.store().object(object::REGIONS, key, &mut out[n..]) {
        n += len.min(out.len() - n);
        key += 1;
    }
    &out[..n]
}

fn map<'a>(e: &mut Engine, m: &Mapped<'a>, stack: (u64, u64), came: &mut Came<'a>) {
    let (r, Came { last, bringing, object }) = (m.region, came);
    match r.backing {
        backing::KERNEL | backing::CONTEXT => return,
        backing::STACK if stack.1 == r.end => {
            e.tracker.leave(stack.0, stack.1);
            reuse_stack(r.start, stack)
        }
        backing::STACK => place(r, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0),
        backing::SHARED_ANONYMOUS => place(r, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
        backing::SEGMENT => {
            let id = bringing.bring(&r, object);
            if r.flags & region_flag::GROUP != 0 && id == Some(r.inode) {
                return shared_memory::recall(e, &r);
            }
            return fill_segment(e, &r, id);
        }
        backing::SHARED_FILE if r.flags & region_flag::UNDONE != 0 && shared_memory::undone::map(e, m) => return,
        backing::SHARED_FILE => {
            if !map_file(m, MAP_SHARED, r.prot as u64, last) {
                degrade(Degradation::MappingLost);
            } else if r.flags & region_flag::GROUP != 0 {
                shared_memory::recall(e, &r);
            }
            return;
        }
        backing::OWN_FILE => {
            if !own_files::map(e, &r) {
                degrade(Degradation::MappingLost);
            }
            return;
        }
        backing::PRIVATE_FILE => {
            if !map_huge(m) && !map_file(m, MAP_PRIVATE, first_prot(&r), last) {
                // Zeros are not what the program would find there.
                if m.path != HUGE_PAGES && !is_all_stored(e, &r) {
                    control::lost_file(m.path);
                }
                place(r, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            }
        }
        backing::ANONYMOUS if e.advice.is_growing(r.start, r.end) => {
            place(r, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0)
        }
        _ => {
            let may_be_lazy = e.args.options & option::EAGER == 0 && !e.advice.is_of_anonymous(r.start, r.end);
            let may_be_lazy = may_be_lazy && !own_faults::meets(r.start, r.end);
            let lazy = r.end - r.start >= LAZY_FROM && !is_code(&r) && may_be_lazy;
            if lazy && map_lazily(e, &r) {
                protect(&r);
                return;
            }
            place(r, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        }
    }
    if is_code(&r) && fill_code(e, &r) {
        return;
    }
    copy_content(e, &r);
    protect(&r);
}

/// Code is never made writable: policies against what is writable and executable would not let it become code again.
fn is_code(r: &Region) -> bool {
    r.prot & 6 == 4
}

/// What a region is mapped with: readable and writable; `protect` takes away what it must not have.
fn first_prot(r: &Region) -> u64 {
    if is_code(r) {
        r.prot as u64
    } else {
        READ_WRITE
    }
}

fn place(r: Region, flags: u64, fd: i64, offset: u64) {
    let prot = first_prot(&r);
    // SAFETY: the range was unmapped.
    let got = unsafe { syscall!(nr::MMAP, r.start, r.end - r.start, prot, flags | MAP_FIXED, fd, offset) };
    if got as u64 != r.start {
        fail!(got);
    }
}

/// Private memory of huge pages, as far as the kernel has some left.
fn map_huge(m: &Mapped<'_>) -> bool {
    let (r, flags) = (m.region, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED);
    // SAFETY: the range was unmapped.
    m.path == HUGE_PAGES
        && unsafe { syscall!(nr::MMAP, r.start, r.end - r.start, first_prot(&r), flags, -1i64, 0) } as u64 == r.start
}

/// Does the store hold every page of the region?
fn is_all_stored(e: &mut Engine, r: &Region) -> bool {
    let mut reached = r.start;
    e.store().runs(r.start, r.end, &mut |addr, _, len| {
        if addr == reached {
            reached += len;
        }
    });
    reached == r.end
}

/// The stack's own mapping stays, since only the kernel can make one that it calls the stack: emptied and resized.
fn reuse_stack(start: u64, stack: (u64, u64)) {
    // SAFETY: the inner stack on which this runs is the engine's own.
    unsafe {
        // A tracker of the same process may have armed it.
        syscall!(nr::MPROTECT, stack.0, stack.1 - stack.0, 3);
        syscall!(nr::MADVISE, stack.0, stack.1 - stack.0, 4);
        if start < stack.0 {
            // A touch makes the kernel extend it.
            (start as *mut u8).write_volatile(0);
        } else if start > stack.0 {
            syscall!(nr::MUNMAP, stack.0, start - stack.0);
        }
    }
}

/// Maps whole chunks of the store over an anonymous region; false if that would take too many pieces.
fn map_lazily(e: &mut Engine, r: &Region) -> bool {
    if e.lazy_count == e.lazy.len() {
        return false;
    }
    place(*r, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    let fd = e.own_fd(OwnFd::Store) as i64;
    e.store().chunk_runs(r.start, r.end, &mut |addr, offset, len| {
        let piece = Region { start: addr, end: addr + len, ..*r };
        place(piece, MAP_PRIVATE | MAP_NORESERVE, fd, offset);
    });
    e.lazy[e.lazy_count] = (r.start, r.end);
    e.lazy_count += 1;
    true
}

/// A segment is attached again. Its content is the program's to take back if nobody else has it.
fn fill_segment(e: &mut Engine, r: &Region, id: Option<u64>) {
    match id {
        None => {
            degrade(Degradation::MappingLost);
            place(*r, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            copy_content(e, r);
        }
        Some(id) if !segments::is_alone(id) => degrade(Degradation::SharedMapping),
        // What was attached to be read only holds what others have written.
        Some(id) if r.prot & 2 == 0 && id == r.inode => {}
        Some(_) => {
            let mut reached = r.start;
            e.store().runs(r.start, r.end, &mut |addr, _, len| {
                segments::empty(reached, addr);
                reached = addr + len;
            });
            segments::empty(reached, r.end);
            copy_content(e, r);
        }
    }
    set_prot(r, r.prot as u64);
}

fn copy_content(e: &mut Engine, r: &Region) {
    e.store().runs(r.start, r.end, &mut |addr, offset, len| {
        // SAFETY: the target was just mapped writable; the frames lie in the mapped store.
        unsafe {
            core::ptr::copy_nonoverlapping((STORE_BASE + offset) as *const u8, addr as *mut u8, len as usize);
        }
    });
}

/// Brings back what the store holds of code: patched pages, stubs, code made at run time. False, and the region is writable,
/// if the kernel refuses that; then there is nothing but to change its protection.
fn fill_code(e: &mut Engine, r: &Region) -> bool {
    let (mut memory, mut done) = (None, true);
    e.store().runs(r.start, r.end, &mut |addr, offset, len| {
        // SAFETY: the frames lie in the mapped store.
        let bytes = unsafe { core::slice::from_raw_parts((STORE_BASE + offset) as *const u8, len as usize) };
        let memory = memory.get_or_insert_with(CodeMemory::open);
        done &= memory.as_ref().is_some_and(|memory| memory.write(addr, bytes));
    });
    if !done {
        set_prot(r, READ_WRITE);
    }
    done
}

fn protect(r: &Region) {
    if r.prot as u64 != READ_WRITE {
        set_prot(r, r.prot as u64);
    }
}

fn set_prot(r: &Region, prot: u64) {
    // SAFETY: the region was just mapped.
    let got = unsafe { syscall!(nr::MPROTECT, r.start, r.end - r.start, prot) };
    if err::is(got) {
        fail!(got);
    }
}

/// Everything restored equals the store: arms all of it.
pub fn arm(e: &mut Engine) {
    let object = join_regions(e);
    let tracker = &mut e.tracker;
    for m in Regions::new(object) {
        if m.region.prot & 2 != 0
            && m.region.flags & region_flag::GROUP == 0
            && !matches!(m.region.backing, backing::KERNEL | backing::SHARED_FILE | backing::CONTEXT)
        {
            own_faults::gaps(m.region.start, m.region.end, |start, end| tracker.arm(start, end));
        }
    }
}

impl Engine {
    /// Is part of the range mapped lazily?
    pub fn is_lazy(&self, start: u64, end: u64) -> bool {
        self.lazy[..self.lazy_count].iter().any(|&(a, b)| start < b && a < end)
    }

    /// Nothing of what was mapped at `start..end` is there any more.
    pub fn replaced(&mut self, start: u64, end: u64) {
        let mut i = 0;
        while i < self.lazy_count {
            let (a, b) = self.lazy[i];
            if start >= b || end <= a {
                i += 1;
                continue;
            }
            self.lazy_count -= 1;
            self.lazy[i] = self.lazy[self.lazy_count];
            for (from, to) in [(a, start), (end, b)] {
                match () {
                    _ if from >= to => {}
                    _ if self.lazy_count < self.lazy.len() => {
                        self.lazy[self.lazy_count] = (from, to);
                        self.lazy_count += 1;
                    }
                    _ => {
                        self.own_pages(from, to);
                    }
                }
            }
        }
    }

    /// Replaces a lazily mapped range, which lies in many pieces over the store, by one mapping of the process's own:
    /// mremap takes nothing less. False, and nothing is done, where the program has not one mapping either.
    pub fn own_pages(&mut self, start: u64, end: u64) -> bool {
        let (mut reached, mut prot) = (start, 0);
        regions::for_each(regions::read_maps(), (self.kernel.start_brk, self.kernel.brk), |m| {
            let r = m.region;
            if r.start <= reached && r.end > reached && (reached == start || prot == r.prot) {
                (reached, prot) = (r.end, r.prot);
            }
        });
        if reached < end {
            return false;
        }
        let (len, flags) = (end - start, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        // SAFETY: a mapping of the engine's own is filled and then put in the place of the program's pages, whose
        // content it holds.
        unsafe {
            let own = syscall!(nr::MMAP, 0, len, 3, flags, -1i64, 0);
            if err::is(own) {
                return false;
            }
            let mut page = [0u64; 512];
            for at in (0..len).step_by(4096) {
                let bytes = bytemuck::bytes_of_mut(&mut page);
                if user::read_bytes(start + at, bytes) && bytes.iter().any(|&b| b != 0) {
                    user::write(own as u64 + at, &page);
                }
            }
            syscall!(nr::MPROTECT, own, len, prot);
            let moved = syscall!(nr::MREMAP, own, len, len, 3, start);
            if err::is(moved) {
                syscall!(nr::MUNMAP, own, len);
            } else {
                self.advice.give_again(start, end);
            }
            !err::is(moved)
        }
    }
}
