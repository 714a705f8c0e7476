//! The anchor's side: a thread of its own, which shares its memory and nobody's descriptors, maps what the list names. However long a
//! file system takes to open a file, the anchor answers.

use super::list::{self, Entry};
use super::{table, Kept};
use crate::calls::thread_birth::{clone_thread, THREAD};
use crate::control::control;
use crate::sys::{err, now_ns, nr, syscall};
use crate::thread::{self, Stack, Thread};
use crate::undo::look;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLOSE_RANGE_UNSHARE: u64 = 2;
const AT_FDCWD: i64 = -100;
const O_RDWR: u64 = 2;
const O_NONBLOCK: u64 = 0o4000;
const O_NOFOLLOW: u64 = 0o400000;
const O_CLOEXEC: u64 = 0o2000000;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_NORESERVE: u64 = 0x4000;
const PATH_MAX: usize = 4096;
const STACK_LEN: usize = 32 << 10;

/// How long what the program maps is left to settle: one that starts maps its libraries one after the other.
const SETTLING_NS: u64 = 100_000_000;
/// Until a second look, and until a thread that was begun is looked for.
const AGAIN_NS: u64 = 1_000_000_000;

/// 0: no thread is at work; the kernel writes that when it has ended.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// Something is kept that the program does not map any more.
static AGAIN: AtomicBool = AtomicBool::new(false);

static mut STACK: Stack<STACK_LEN> = Stack::new();

/// When the thread has to begin.
pub struct Keeper {
    /// Which list was read last.
    seen: u32,
    /// CLOCK_MONOTONIC in nanoseconds.
    due: Option<u64>,
}

impl Keeper {
    /// In an anchor that has just begun.
    pub fn new() -> Keeper {
        // Who was cloned in the middle, and whoever is cloned from that, has not the thread.
        BUSY.store(0, Release);
        AGAIN.store(false, Release);
        Keeper { seen: 0, due: None }
    }

    /// Has the list read if it is time. What to wait for: the word that tells of another list with what it is now, or nanoseconds.
    pub fn attend(&mut self) -> Result<(&'static AtomicU32, u32), u64> {
        let word = &control().mapped_files;
        let now = word.load(Acquire);
        if BUSY.load(Acquire) != 0 {
            return Err(AGAIN_NS);
        }
        let wait = match (self.seen != now, AGAIN.load(Acquire)) {
            (true, _) => Some(SETTLING_NS),
            (_, true) => Some(AGAIN_NS),
            _ => None,
        };
        let Some(wait) = wait else { return Ok((word, now)) };
        let time = now_ns();
        let due = *self.due.get_or_insert(time + wait);
        if time < due {
            return Err(due - time);
        }
        (self.seen, self.due) = (now, None);
        AGAIN.store(false, Release);
        begin();
        Err(AGAIN_NS)
    }
}

fn begin() {
    BUSY.store(1, Release);
    // SAFETY: the stack is free while no thread is at work. The thread has the anchor's control block, which it does not change.
    unsafe {
        let top = (&raw mut STACK) as u64 + STACK_LEN as u64;
        let flags = THREAD | CLONE_CHILD_CLEARTID;
        let call = [nr::CLONE, flags, top, 0, BUSY.as_ptr() as u64, 0, 0];
        if err::is(clone_thread(&call, thread::current(), run)) {
            BUSY.store(0, Release);
            AGAIN.store(true, Release);
        }
    }
}

unsafe extern "C" fn run(_: &mut Thread) -> ! {
    // The program's descriptors are not to be held, nor are numbers of its table to be used, not for a moment.
    if !err::is(syscall!(nr::CLOSE_RANGE, 0, u32::MAX, CLOSE_RANGE_UNSHARE)) {
        follow();
    }
    loop {
        syscall!(nr::EXIT, 0);
    }
}

/// Maps what is listed and not there, and lets go of what was found unlisted twice: nobody goes back to where it was listed.
unsafe fn follow() {
    let files = &mut table().files;
    files.iter_mut().for_each(|file| file.absent += 1);
    list::each(|entry, path| {
        let same = |file: &&mut Kept| {
            file.inode == entry.inode
                && file.is_shared == (entry.is_shared != 0)
                && file.start <= entry.start
                && entry.end <= file.end
                && u16::from(file.can_write) >= entry.can_write
        };
        match table().files.iter_mut().find(same) {
            Some(file) => file.absent = 0,
            None => keep(entry, path),
        }
    });
    for file in table().files.iter_mut().filter(|file| file.inode != 0 && file.absent > 0 && !file.is_pinned) {
        if file.absent > 1 {
            let gone = *file;
            // In this order: a clone made in between has the mapping and no use for it.
            file.set_inode(0);
            syscall!(nr::MUNMAP, gone.place, gone.end - gone.start);
        } else {
            AGAIN.store(true, Release);
        }
    }
}

unsafe fn keep(entry: &Entry, path: &[u8]) {
    let Some(len) = entry.end.checked_sub(entry.start).filter(|&len| len != 0 && path.len() < PATH_MAX) else { return };
    let mut name = [0u8; PATH_MAX];
    name[..path.len()].copy_from_slice(path);
    // Opening what is no plain file may have effects.
    let is_it = |look: look::Look| look.is_regular() && look.identity.inode() == entry.inode;
    if !look::at(AT_FDCWD, name.as_ptr()).is_ok_and(is_it) {
        return;
    }
    let (mode, prot) = if entry.can_write != 0 { (O_RDWR, 3) } else { (0, 1) };
    let fd = syscall!(nr::OPENAT, AT_FDCWD, name.as_ptr(), mode | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
    if err::is(fd) {
        return;
    }
    if let Some(place) = table().room(len).filter(|_| look::of(fd as i32).is_ok_and(is_it)) {
        let flags = MAP_FIXED | MAP_NORESERVE | if entry.is_shared != 0 { MAP_SHARED } else { MAP_PRIVATE };
        let mapped = syscall!(nr::MMAP, place, len, prot, flags, fd, entry.start);
        let kept = Kept {
            inode: entry.inode,
            is_shared: entry.is_shared != 0,
            can_write: entry.can_write != 0,
            start: entry.start,
            end: entry.end,
            place,
            absent: 0,
            is_pinned: false,
        };
        if mapped as u64 == place && !table().enter(kept) {
            syscall!(nr::MUNMAP, place, len);
        }
    }
    syscall!(nr::CLOSE, fd);
}
