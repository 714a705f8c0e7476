//! userfaultfd `WP_ASYNC` and `PAGEMAP_SCAN` (Linux ≥ 6.7): no fault handler, writes of the kernel are tracked too.

use super::areas::{Area, PROT_WRITE};
use super::{Content, Track};
use crate::control::fail;
use crate::dispatch::{native, Call};
use crate::scratch;
use crate::sys::{err, nr, syscall};
use outlast_image::layout::USER_END;

const UFFD_API: u64 = 0xc018_aa3f;
const UFFD_REGISTER: u64 = 0xc020_aa00;
const UFFD_WRITEPROTECT: u64 = 0xc018_aa06;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const REGISTER_MODE_WP: u64 = 2;
const USER_MODE_ONLY: u64 = 1;
const O_CLOEXEC: u64 = 0o2000000;
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// Flag: write-protects what matches.
const WP_MATCHING: u64 = 1;

const WP_ALLOWED: u64 = 1;
const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const PFN_ZERO: u64 = 1 << 5;

#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Categories that a page must have, and must not have.
struct Wanted {
    all: u64,
    not: u64,
}

/// See the module.
pub struct WriteProtectAsync {
    uffd: i32,
    pagemap: i32,
    faults: u64,
    forced: bool,
}

impl WriteProtectAsync {
    pub const fn new() -> Self {
        WriteProtectAsync { uffd: 0, pagemap: 0, faults: 0, forced: false }
    }

    fn register(&mut self, start: u64, end: u64) {
        self.forced = true;
        let mut arg = [start, end - start, REGISTER_MODE_WP, 0];
        // SAFETY: registering changes no content. Regions that cannot be tracked (vvar, special files) are refused with
        // EINVAL and hold nothing of the program's.
        unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_REGISTER, arg.as_mut_ptr()) };
    }

    /// Arms all that was written, in one walk.
    pub fn arm_written(&mut self) {
        let mut a = ScanArg {
            size: core::mem::size_of::<ScanArg>() as u64,
            flags: WP_MATCHING,
            end: USER_END,
            category_mask: WP_ALLOWED | WRITTEN,
            category_anyof_mask: PRESENT | SWAPPED,
            ..Default::default()
        };
        while a.start < USER_END {
            // SAFETY: no vector is passed; write protection changes no content.
            let r = unsafe { syscall!(nr::IOCTL, self.pagemap, PAGEMAP_SCAN, &raw mut a) };
            if err::is(r) && r != err::EINTR {
                fail!(r);
            }
            a.start = a.walk_end;
        }
        self.forced = true;
    }

    fn scan(&mut self, start: u64, end: u64, wanted: Wanted, vec: &mut [u8], f: &mut dyn FnMut(u64, u64)) {
        let mut a = ScanArg {
            size: core::mem::size_of::<ScanArg>() as u64,
            start,
            end,
            vec: vec.as_mut_ptr() as u64,
            vec_len: vec.len() as u64 / 24,
            category_inverted: wanted.not,
            category_mask: wanted.all | wanted.not,
            category_anyof_mask: PRESENT | SWAPPED,
            return_mask: WRITTEN,
            ..Default::default()
        };
        while a.start < end {
            // SAFETY: the kernel writes `vec_len` regions of 24 bytes into `vec` and the walk's end into `a`.
            let n = unsafe { syscall!(nr::IOCTL, self.pagemap, PAGEMAP_SCAN, &raw mut a) };
            if n < 0 {
                if n == err::EINTR {
                    continue;
                }
                fail!(n);
            }
            for i in 0..n as usize {
                let at = |k: usize| u64::from_ne_bytes(vec[i * 24 + k..i * 24 + k + 8].try_into().unwrap_or([0; 8]));
                f(at(0), at(8));
            }
            if a.walk_end <= a.start {
                break;
            }
            a.start = a.walk_end;
        }
    }
}

/// Minor and major faults of this thread: every first write to an armed page is one.
fn fault_count() -> u64 {
    let mut usage = [0u64; 18];
    // SAFETY: getrusage writes 144 bytes.
    unsafe { syscall!(nr::GETRUSAGE, 1, usage.as_mut_ptr()) };
    usage[8].wrapping_add(usage[9])
}

impl Track for WriteProtectAsync {
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64> {
        // SAFETY: descriptors are created and moved to numbers that are the engine's.
        unsafe {
            let mut u = syscall!(nr::USERFAULTFD, O_CLOEXEC | 0o4000);
            if err::is(u) {
                u = syscall!(nr::USERFAULTFD, O_CLOEXEC | 0o4000 | USER_MODE_ONLY);
            }
            if err::is(u) {
                return Err(u);
            }
            let mut api = [0xaau64, FEATURE_WP_ASYNC | FEATURE_WP_HUGETLBFS_SHMEM, 0];
            let r = syscall!(nr::IOCTL, u, UFFD_API, api.as_mut_ptr());
            if err::is(r) {
                syscall!(nr::CLOSE, u);
                return Err(r);
            }
            let p = syscall!(nr::OPENAT, -100i64, c"/proc/self/pagemap".as_ptr(), O_CLOEXEC, 0);
            if err::is(p) {
                syscall!(nr::CLOSE, u);
                return Err(p);
            }
            for (from, to) in [(u, fds[0]), (p, fds[1])] {
                let r = syscall!(nr::DUP3, from, to, O_CLOEXEC);
                syscall!(nr::CLOSE, from);
                if err::is(r) {
                    return Err(r);
                }
            }
        }
        [self.uffd, self.pagemap] = fds;
        self.forced = true;
        // A trial scan: kernels before 6.7 have no PAGEMAP_SCAN.
        let mut a = ScanArg {
            size: 96,
            start: 0x1000,
            end: 0x2000,
            category_mask: WRITTEN,
            return_mask: WRITTEN,
            ..Default::default()
        };
        // SAFETY: no vector is passed.
        let r = unsafe { syscall!(nr::IOCTL, self.pagemap, PAGEMAP_SCAN, &raw mut a) };
        if err::is(r) {
            return Err(r);
        }
        Ok(())
    }

    fn renumber(&mut self, fds: [i32; 2]) {
        [self.uffd, self.pagemap] = fds;
    }

    fn cover(&mut self, area: &Area, _content: Content) {
        if area.is_tracked() {
            self.register(area.start, area.end);
        }
    }

    #[inline]
    fn may_have_changed(&mut self) -> bool {
        let n = fault_count();
        let changed = self.forced || n != self.faults;
        self.faults = n;
        changed
    }

    fn collect(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let vec = scratch::page_vector();
        let half = vec.len() / 2;
        self.scan(start, end, Wanted { all: WP_ALLOWED | WRITTEN, not: 0 }, &mut vec[..half], f);
        self.forced = false;
    }

    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64)) {
        let vec = scratch::page_vector();
        let half = vec.len() / 2;
        self.scan(start, end, Wanted { all: 0, not: FILE | PFN_ZERO }, &mut vec[half..], f);
    }

    fn arm(&mut self, start: u64, end: u64) {
        let mut arg = [start, end - start, 1];
        // SAFETY: write protection changes no content. ENOENT: the region was unmapped meanwhile or is not covered.
        unsafe { syscall!(nr::IOCTL, self.uffd, UFFD_WRITEPROTECT, arg.as_mut_ptr()) };
    }

    fn uncover(&mut self, _start: u64, _end: u64) {}

    fn written(&mut self, _page: u64) {
        self.forced = true;
    }

    fn protect(&mut self, call: &Call) -> i64 {
        let [addr, len, prot, ..] = call.args;
        let r = native(call);
        if prot as u32 & PROT_WRITE != 0 {
            self.register(addr & !4095, addr.saturating_add(len).saturating_add(4095) & !4095);
        }
        self.forced = true;
        r
    }

    fn before_move(&mut self, _old: (u64, u64), _whole: bool) {}

    fn moved(&mut self, _old: (u64, u64), new: (u64, u64), _keep_old: bool) {
        // Moving takes a region out of the tracker's care.
        self.register(new.0, new.1);
    }

    fn open(&mut self, _start: u64, _end: u64) {}

    fn pin(&mut self, _page: u64) {}

    fn settle(&mut self) -> bool {
        false
    }

    fn written_behind(&mut self) {
        self.forced = true;
    }

    fn release(&mut self) {}
}
