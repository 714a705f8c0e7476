//! Watches of inotify. The kernel knows files by what they are, and /proc tells only that: by which path each is watched the call says that
//! adds the watch.
//!
//! Numbers of watches are given one after the other, and never twice: a new inotify comes by the numbers of the old one when as many
//! watches are added to it, and those that stand for gaps removed again.

use crate::control::degrade;
use crate::own_descriptors::Passing;
use crate::proc;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::user;
use bytemuck::{Pod, Zeroable};
use core::mem::size_of;
use outlast_image::degradation::Degradation;

/// As many are kept, of all inotifys together.
const MOST: usize = 256;
/// The longest path that is.
const PATH: usize = 512;
/// As many numbers are skipped, of one inotify.
const MOST_SKIPPED: i32 = 1 << 18;
/// Watches that are removed at once leave a message each.
const DRAINED_AFTER: i32 = 1 << 10;

const IN_DELETE_SELF: u32 = 0x400;
const IN_DONT_FOLLOW: u32 = 0x200_0000;
const IN_MASK_CREATE: u32 = 0x1000_0000;
const IN_MASK_ADD: u32 = 0x2000_0000;
const O_PATH: u64 = 0o10000000;
const O_NOFOLLOW: u64 = 0o400000;
const O_NONBLOCK: u64 = 0o4000;

/// A watch, as a commit keeps it; key: its place. The path follows, with its NUL.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Watch {
    /// The inotify's number as an open file; 0: the place is free.
    file: u32,
    number: i32,
    mask: u32,
    unused: u32,
    dev: u64,
    inode: u64,
}

const NONE: Watch = Watch { file: 0, number: 0, mask: 0, unused: 0, dev: 0, inode: 0 };

struct Table {
    all: [Watch; MOST],
    paths: [[u8; PATH]; MOST],
    /// Changed since the last commit.
    touched: [bool; MOST],
    any_touched: bool,
    /// Places that were ever used.
    end: usize,
}

static mut TABLE: Table =
    Table { all: [NONE; MOST], paths: [[0; PATH]; MOST], touched: [false; MOST], any_touched: false, end: 0 };

fn table() -> &'static mut Table {
    // SAFETY: only whoever holds the engine's lock comes here, and never while another reference is in use.
    unsafe {
        let this = &raw mut TABLE;
        &mut *this
    }
}

impl Table {
    fn find(&self, file: u32, number: i32) -> Option<usize> {
        self.all[..self.end].iter().position(|watch| (watch.file, watch.number) == (file, number) && file != 0)
    }

    fn free(&mut self) -> Option<usize> {
        let free = self.all[..self.end].iter().position(|watch| watch.file == 0);
        free.or_else(|| {
            self.end += usize::from(self.end < MOST);
            (self.end <= MOST && self.all[self.end - 1].file == 0).then(|| self.end - 1)
        })
    }

    fn put(&mut self, i: usize, watch: Watch) {
        (self.all[i], self.touched[i], self.any_touched) = (watch, true, true);
    }
}

/// The program has added a watch, or changed one: its number is `number`.
pub fn added(e: &mut Engine, fd: i32, path: u64, mask: u32, number: i32) {
    let file = e.fds.origins.of(fd).file;
    e.fds.origins.watches_up_to(fd, number);
    e.fds.changed(fd);
    let table = table();
    if let Some(i) = table.find(file, number) {
        let old = table.all[i];
        let kept = if mask & IN_MASK_ADD != 0 { old.mask } else { 0 };
        return table.put(i, Watch { mask: mask & !IN_MASK_ADD | kept, ..old });
    }
    let mut name = [0u8; PATH];
    let found = real_path(path, mask, &mut name);
    match (found, if file != 0 { table.free() } else { None }) {
        (Some((dev, inode)), Some(i)) => {
            table.paths[i] = name;
            table.put(i, Watch { file, number, mask: mask & !(IN_MASK_ADD | IN_MASK_CREATE), unused: 0, dev, inode });
        }
        _ => e.fds.origins.lost_watch(fd),
    }
}

/// It has removed one.
pub fn removed(e: &mut Engine, fd: i32, number: i32) {
    let table = table();
    if let Some(i) = table.find(e.fds.origins.of(fd).file, number) {
        table.put(i, NONE);
    }
}

/// The name that the file has, whatever the program calls it; its device and inode. `None`: it has none, or one that is too long.
fn real_path(path: u64, mask: u32, name: &mut [u8; PATH]) -> Option<(u64, u64)> {
    let mut called = [0u8; 4096];
    user::read_path(path, &mut called)?;
    let follow = if mask & IN_DONT_FOLLOW != 0 { O_NOFOLLOW } else { 0 };
    let file = Passing::open(called.as_ptr(), O_PATH | follow).ok()?;
    let mut st = [0u64; 18];
    // SAFETY: the kernel writes 144 bytes.
    unsafe { syscall!(nr::FSTAT, file.fd, st.as_mut_ptr()) };
    let n = proc::link(file.fd as i32, name).len();
    let whole = (1..PATH).contains(&n) && name[0] == b'/';
    if whole {
        name[n] = 0;
    }
    whole.then_some((st[0], st[1]))
}

/// Forgets those of the inotify behind `fd` that the kernel has no more: files that were removed, and what was to be told of once.
pub fn compare(e: &mut Engine, fd: i32) {
    let file = e.fds.origins.of(fd).file;
    let text = proc::info(fd, crate::scratch::maps_text());
    let table = table();
    for i in 0..table.end {
        let watch = table.all[i];
        let is_there = || {
            text.split(|&c| c == b'\n')
                .any(|line| super::fdinfo::numbers::<1>(line, b"inotify wd:", 16)[0] == watch.number as u64)
        };
        if watch.file == file && !text.is_empty() && !is_there() {
            table.put(i, NONE);
        }
    }
}

/// The program has no inotify of that number any more.
pub fn closed(file: u32) {
    let table = table();
    for i in 0..table.end {
        if table.all[i].file == file {
            table.put(i, NONE);
        }
    }
}

/// Puts what changed into the commit that is being made.
pub fn save(e: &mut Engine) {
    let table = table();
    if !core::mem::take(&mut table.any_touched) {
        return;
    }
    for i in 0..table.end {
        if !core::mem::take(&mut table.touched[i]) {
            continue;
        }
        let (watch, path) = (&table.all[i], &table.paths[i]);
        if watch.file != 0 {
            let len = path.iter().position(|&c| c == 0).map_or(PATH, |n| n + 1);
            e.store().put2(object::WATCH, i as u64, bytemuck::bytes_of(watch), &path[..len]);
        } else if e.store().object(object::WATCH, i as u64, &mut []).is_some() {
            e.store().delete(object::WATCH, i as u64);
        }
    }
}

/// Fills the table of a restored program. `any`: there are inotifys.
pub fn load(e: &mut Engine, any: bool) {
    const HEAD: usize = size_of::<Watch>();
    let table = table();
    table.all[..table.end].fill(NONE);
    (table.end, table.any_touched) = (0, false);
    table.touched = [false; MOST];
    for i in 0..if any { MOST } else { 0 } {
        let mut bytes = [0u8; HEAD + PATH];
        let Some(n) = e.store().object(object::WATCH, i as u64, &mut bytes).filter(|&n| n > HEAD && n <= bytes.len())
        else {
            continue;
        };
        table.all[i] = bytemuck::pod_read_unaligned(&bytes[..HEAD]);
        table.paths[i] = [0; PATH];
        table.paths[i][..n - HEAD].copy_from_slice(&bytes[HEAD..n]);
        table.paths[i][PATH - 1] = 0;
        table.end = i + 1;
    }
}

/// Makes an inotify with the watches of the commit, which are those of `file`; the last number that it has given is `last`.
pub fn make(file: u32, flags: u64, last: i32) -> i64 {
    // SAFETY: makes an inotify.
    let fd = unsafe { syscall!(nr::INOTIFY_INIT1, O_NONBLOCK) };
    if err::is(fd) {
        return fd;
    }
    let (table, mut given, mut skipped) = (table(), 0, 0);
    let next_after = |number: i32| {
        let of_it = table.all[..table.end].iter().enumerate().filter(|(_, watch)| watch.file == file);
        of_it.filter(|(_, watch)| watch.number > number).min_by_key(|(_, watch)| watch.number)
    };
    // Nothing is to be told of before all have their numbers.
    let (mut number, mut reached) = (0, [false; MOST]);
    while let Some((i, watch)) = next_after(number) {
        number = watch.number;
        let path = &table.paths[i];
        let follow = watch.mask & IN_DONT_FOLLOW;
        if !is_the_same(path, watch) || !reach(fd, path, follow, number, &mut given, &mut skipped) {
            degrade(Degradation::DescriptorLost);
        } else {
            reached[i] = true;
        }
    }
    let mut nothing = [0u8; PATH];
    nothing[..NOWHERE.len()].copy_from_slice(NOWHERE);
    if last > given && reach(fd, &nothing, 0, last, &mut given, &mut skipped) {
        // SAFETY: takes away what was just added.
        unsafe { syscall!(nr::INOTIFY_RM_WATCH, fd, last) };
    }
    drain(fd);
    for i in (0..table.end).filter(|&i| reached[i]) {
        add(fd, &table.paths[i], table.all[i].mask);
    }
    // SAFETY: sets flags of what was just made.
    unsafe { syscall!(nr::FCNTL, fd, 4, flags) };
    fd
}

/// Where no program looks.
const NOWHERE: &[u8] = b"/proc/self/ns\0";

fn add(fd: i64, path: &[u8; PATH], mask: u32) -> i32 {
    // SAFETY: the path ends with a NUL.
    unsafe { syscall!(nr::INOTIFY_ADD_WATCH, fd, path.as_ptr(), mask) as i32 }
}

/// Has the file be watched by that number. `follow`: IN_DONT_FOLLOW or nothing.
fn reach(fd: i64, path: &[u8; PATH], follow: u32, number: i32, given: &mut i32, skipped: &mut i32) -> bool {
    while *given < number {
        let got = add(fd, path, IN_DELETE_SELF | follow);
        // Of one that is watched already the number is an old one.
        if got <= *given {
            return false;
        }
        *given = got;
        if got >= number {
            return got == number;
        }
        *skipped += 1;
        // SAFETY: takes away what was just added.
        unsafe { syscall!(nr::INOTIFY_RM_WATCH, fd, got) };
        if *skipped % DRAINED_AFTER == 0 {
            drain(fd);
        }
        if *skipped > MOST_SKIPPED {
            return false;
        }
    }
    false
}

/// Takes what it tells of.
fn drain(fd: i64) {
    let mut events = [0u8; 4096];
    // SAFETY: the kernel writes at most as many bytes as there is room for.
    while unsafe { syscall!(nr::READ, fd, events.as_mut_ptr(), events.len()) } > 0 {}
}

/// Is it the file that the program wanted to be told of?
fn is_the_same(path: &[u8; PATH], watch: &Watch) -> bool {
    let mut st = [0u64; 18];
    let call = if watch.mask & IN_DONT_FOLLOW != 0 { nr::LSTAT } else { nr::STAT };
    // SAFETY: the path ends with a NUL; the kernel writes 144 bytes.
    unsafe { syscall!(call, path.as_ptr(), st.as_mut_ptr()) == 0 && (st[0], st[1]) == (watch.dev, watch.inode) }
}
