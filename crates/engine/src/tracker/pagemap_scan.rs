//! PAGEMAP_SCAN (Linux ≥ 6.7): finds pages of this process by what the kernel knows of them.

use crate::control::fail;
use crate::sys::{err, nr, syscall};

const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// Flag: write-protects what matches.
const WP_MATCHING: u64 = 1;

const WP_ALLOWED: u64 = 1;
const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const PFN_ZERO: u64 = 1 << 5;

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Run {
    pub start: u64,
    pub end: u64,
    categories: u64,
}

impl Run {
    /// Are its pages not armed?
    pub fn is_written(&self) -> bool {
        self.categories & WRITTEN != 0
    }

    /// Are its pages in memory? If not they are swapped out, or nothing is there but the note that they are armed.
    pub fn is_present(&self) -> bool {
        self.categories & PRESENT != 0
    }
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Arg {
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

/// What to look for.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// Not armed: what is `Written`, and much else. 0.9 ns a page.
    Unarmed,
    /// Tracked, present (or swapped out), and written since it was armed. 2.8 ns a page.
    Written,
    /// Present, and the process's own: no untouched file page, not the zero page. 34 ns a page.
    Own,
    /// Present, and not the zero page: of shared memory, whose pages are a file's to the kernel. 34 ns a page.
    Shared,
    /// There at all, and protected by the program, who is told of writes there.
    Protected,
    /// There at all, and the zero page.
    Zero,
}

impl Wanted {
    /// Categories that a page must have, must not have, and of which it must have one.
    fn categories(self) -> (u64, u64, u64) {
        match self {
            // With anything else in the masks the kernel takes its long way.
            Wanted::Unarmed => (WRITTEN, 0, 0),
            Wanted::Written => (WP_ALLOWED | WRITTEN, 0, PRESENT | SWAPPED),
            Wanted::Own => (0, FILE | PFN_ZERO, PRESENT | SWAPPED),
            Wanted::Protected => (0, WRITTEN, PRESENT | SWAPPED),
            Wanted::Zero => (PFN_ZERO, 0, PRESENT),
            Wanted::Shared => (0, PFN_ZERO, PRESENT | SWAPPED),
        }
    }
}

/// A walk over a range, in ascending order.
pub struct Walk {
    pagemap: i32,
    room: &'static mut [Run],
    arg: Arg,
}

impl Walk {
    /// `room` is where results go; `pagemap` a descriptor of /proc/self/pagemap.
    pub fn new(pagemap: i32, start: u64, end: u64, wanted: Wanted, room: &'static mut [Run]) -> Walk {
        let (all, not, any) = wanted.categories();
        let arg = Arg {
            size: core::mem::size_of::<Arg>() as u64,
            start,
            end,
            vec: room.as_mut_ptr() as u64,
            vec_len: room.len() as u64,
            category_inverted: not,
            category_mask: all | not,
            category_anyof_mask: any,
            return_mask: if matches!(wanted, Wanted::Own | Wanted::Shared) { WRITTEN | PRESENT } else { WRITTEN },
            ..Default::default()
        };
        Walk { pagemap, room, arg }
    }

    /// Arms what it finds.
    pub fn arming(mut self) -> Walk {
        self.arg.flags = WP_MATCHING;
        self
    }

    /// The next runs of pages; None at the end.
    pub fn next(&mut self) -> Option<&[Run]> {
        while self.arg.start < self.arg.end {
            // SAFETY: the kernel writes at most `vec_len` runs into `room`, and the walk's end into `arg`.
            let n = unsafe { syscall!(nr::IOCTL, self.pagemap, PAGEMAP_SCAN, &raw mut self.arg) };
            if n < 0 {
                if n == err::EINTR {
                    continue;
                }
                fail!(n);
            }
            // The walk's end may lie short of the range's although there is no more to be found.
            self.arg.start = if self.arg.walk_end > self.arg.start { self.arg.walk_end } else { self.arg.end };
            if n > 0 {
                return Some(&self.room[..n as usize]);
            }
        }
        None
    }
}

/// Arms every page of a range that was written since it was armed, in one walk.
pub fn arm_written(pagemap: i32, start: u64, end: u64) {
    let (all, _, any) = Wanted::Written.categories();
    let mut arg = Arg {
        size: core::mem::size_of::<Arg>() as u64,
        flags: WP_MATCHING,
        start,
        end,
        category_mask: all,
        category_anyof_mask: any,
        ..Default::default()
    };
    while arg.start < end {
        // SAFETY: no room for results is passed; write protection changes no content.
        let r = unsafe { syscall!(nr::IOCTL, pagemap, PAGEMAP_SCAN, &raw mut arg) };
        if err::is(r) && r != err::EINTR {
            fail!(r);
        }
        arg.start = arg.walk_end;
    }
}

/// Is every page of a range in memory, or swapped out?
pub fn are_present(pagemap: i32, start: u64, end: u64) -> bool {
    let mut runs: [Run; 4] = bytemuck::Zeroable::zeroed();
    let mut arg = Arg {
        size: core::mem::size_of::<Arg>() as u64,
        start,
        end,
        vec: runs.as_mut_ptr() as u64,
        vec_len: runs.len() as u64,
        category_anyof_mask: PRESENT | SWAPPED,
        // Neighbours that do not differ in it are one run.
        return_mask: FILE,
        ..Default::default()
    };
    let mut reached = start;
    while reached < end {
        // SAFETY: the kernel writes at most `vec_len` runs, and the walk's end into `arg`.
        let n = unsafe { syscall!(nr::IOCTL, pagemap, PAGEMAP_SCAN, &raw mut arg) };
        if n == err::EINTR {
            continue;
        }
        if n <= 0 {
            return false;
        }
        for run in &runs[..n as usize] {
            if run.start > reached {
                return false;
            }
            reached = run.end;
        }
        arg.start = reached;
    }
    true
}

/// Has the program protected any page of a range?
pub fn any_protected(pagemap: i32, start: u64, end: u64) -> bool {
    let mut run: [Run; 1] = bytemuck::Zeroable::zeroed();
    let (_, not, any) = Wanted::Protected.categories();
    let mut arg = Arg {
        size: core::mem::size_of::<Arg>() as u64,
        start,
        end,
        vec: run.as_mut_ptr() as u64,
        vec_len: 1,
        max_pages: 1,
        category_inverted: not,
        category_mask: not,
        category_anyof_mask: any,
        return_mask: FILE,
        ..Default::default()
    };
    loop {
        // SAFETY: the kernel writes one run, and the walk's end into `arg`.
        match unsafe { syscall!(nr::IOCTL, pagemap, PAGEMAP_SCAN, &raw mut arg) } {
            err::EINTR => {}
            n => return n != 0,
        }
    }
}

/// Does this kernel have it?
pub fn try_out(pagemap: i32) -> i64 {
    let mut arg = Arg {
        size: core::mem::size_of::<Arg>() as u64,
        start: 0x1000,
        end: 0x2000,
        category_mask: WRITTEN,
        return_mask: WRITTEN,
        ..Default::default()
    };
    // SAFETY: no room for results is passed.
    unsafe { syscall!(nr::IOCTL, pagemap, PAGEMAP_SCAN, &raw mut arg) }
}
