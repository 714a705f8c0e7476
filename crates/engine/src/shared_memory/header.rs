//! The group's own file: a lock, and what was there before the write that is being made.
//!
//! All processes of the group map it. Who holds the lock is named by its process id as the program knows it, which a successor
//! inherits; the kernel's number is there too, so that who waits sees whether anybody is behind it.

use crate::control::control;
use crate::shared_files;
use crate::state::{Engine, OwnFd};
use crate::sys::{futex_wait, nr, syscall};
use crate::undo::look;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use outlast_image::context::PendingCall;
use outlast_image::layout::{GROUP_BASE, GROUP_LEN, PAGE};

/// Pages that one instruction may write to: those of a scattered vector.
pub const PAGES: usize = 18;
/// How often one that waits looks at once whether the lock is free: another processor needs it for a few microseconds.
const LOOKS: u32 = 64;
/// How long it sleeps between further looks, and how many these are, before it asks to be woken. Who is woken at each release takes the
/// processor from the one that releases, which soon wants the lock again, and so in turn for every write.
const NAP_NS: u64 = 50_000;
const NAPS: u32 = 20;
/// How long one that asks to be woken looks for signs of who holds the lock. Nanoseconds.
const PATIENCE_NS: u64 = 5_000_000;
/// How often in a row it finds nobody behind it until the lock is taken from a process that was ended for good.
const ABSENCES: u32 = 1000;

const _: () = assert!(GROUP_LEN >= (PAGES as u64 + 1) * PAGE);

/// At the beginning of the file; a page for each address follows from the second page on.
#[repr(C)]
pub struct Header {
    /// The process that holds the lock; 0: nobody.
    owner: AtomicU32,
    /// Its number for the kernel.
    real: AtomicU32,
    /// How many wait for the lock.
    waiting: AtomicU32,
    /// How many pages are kept.
    count: AtomicU32,
    /// The last commit of who holds the lock, when it took it.
    seq: AtomicU64,
    addresses: [AtomicU64; PAGES],
}

/// The mapped file.
pub fn header() -> &'static Header {
    // SAFETY: mapped in every process of a group, and any bytes will do.
    unsafe { &*(GROUP_BASE as *const Header) }
}

/// Whether this process has it.
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Does the process belong to a group?
pub fn is_there() -> bool {
    IS_THERE.load(Relaxed)
}

/// Maps the file in this process, if the supervisor has provided one. What is in no use is occupied by the session.
pub fn map(e: &Engine) {
    let file = |fd| look::of(fd).ok().filter(|look| look.is_regular()).map(|look| look.identity);
    let own = file(e.own_fd(OwnFd::Group));
    let is_provided = own.is_some() && own != file(e.own_fd(OwnFd::Session));
    // SAFETY: the range is the engine's.
    let is_there = is_provided
        && unsafe { syscall!(nr::MMAP, GROUP_BASE, GROUP_LEN, 3, 0x11, e.own_fd(OwnFd::Group), 0) } as u64
            == GROUP_BASE;
    IS_THERE.store(is_there, Relaxed);
}

impl Header {
    /// Takes the lock for a write after commit `seq`.
    pub fn lock(&self, e: &Engine, seq: u64) {
        let me = e.kernel.pid;
        let (mut absences, mut looks) = (0, 0);
        while let Err(owner) = self.owner.compare_exchange(0, me, SeqCst, SeqCst) {
            looks += 1;
            if looks <= LOOKS {
                core::hint::spin_loop();
                continue;
            }
            if looks <= LOOKS + NAPS {
                futex_wait(&self.owner, owner, Some(NAP_NS));
                continue;
            }
            self.waiting.fetch_add(1, SeqCst);
            futex_wait(&self.owner, owner, Some(PATIENCE_NS));
            self.waiting.fetch_sub(1, SeqCst);
            absences = if self.is_absent(owner) { absences + 1 } else { 0 };
            if absences > ABSENCES && self.owner.compare_exchange(owner, me, SeqCst, SeqCst).is_ok() {
                // Natively, too, nobody would know whether it was killed before or after its write.
                break;
            }
        }
        self.count.store(0, Relaxed);
        self.real.store(control().program_pid.load(Relaxed) as u32, Relaxed);
        self.seq.store(seq, Release);
    }

    /// Does this process hold the lock, or did its predecessor?
    pub fn is_mine(&self, e: &Engine) -> bool {
        self.owner.load(Acquire) == e.kernel.pid
    }

    fn is_absent(&self, owner: u32) -> bool {
        let real = self.real.load(Acquire);
        // SAFETY: asks only.
        let is_gone = |pid: u32| unsafe { syscall!(nr::KILL, pid, 0) } == -3;
        self.owner.load(Acquire) == owner && is_gone(owner) && is_gone(real)
    }

    /// Keeps what is in the page, which the holder of the lock is about to write to. False: there is no room.
    pub fn keep(&self, page: u64) -> bool {
        let n = self.count.load(Relaxed) as usize;
        if n == PAGES {
            return false;
        }
        self.addresses[n].store(page, Relaxed);
        // SAFETY: the page can be read, since the program may write to it; the other one is the file's.
        unsafe { core::ptr::copy_nonoverlapping(page as *const u8, kept(n), PAGE as usize) };
        self.count.store(n as u32 + 1, Release);
        true
    }

    /// Puts back the first page that is kept, which lies at `at`, and keeps none.
    pub fn put_back(&self, at: u64) {
        // SAFETY: nobody else writes there while this process has the lock.
        unsafe { core::ptr::copy_nonoverlapping(kept(0), at as *mut u8, PAGE as usize) };
        self.count.store(0, Release);
    }

    /// The pages that are kept.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        let n = (self.count.load(Acquire) as usize).min(PAGES);
        self.addresses[..n].iter().map(|address| address.load(Relaxed))
    }

    /// The write is committed, or was never made.
    pub fn unlock(&self) {
        self.count.store(0, Release);
        self.owner.store(0, SeqCst);
        if self.waiting.load(SeqCst) != 0 {
            // SAFETY: wakes only.
            unsafe { syscall!(nr::FUTEX, self.owner.as_ptr(), 1, 1) };
        }
    }
}

fn kept(n: usize) -> *mut u8 {
    (GROUP_BASE + (n as u64 + 1) * PAGE) as *mut u8
}

/// In a process that was restored to the commit `seq`, its memory mapped, before the call that the commit stands before is made again: what
/// its predecessor left in the middle of a write.
pub fn settle(e: &Engine, seq: u64, pending: &PendingCall) {
    let h = header();
    if !is_there() || !h.is_mine(e) {
        return;
    }
    if h.seq.load(Acquire) == seq {
        for (n, page) in h.pages().enumerate() {
            let Some(range) = e.shared_memory.find(page) else { continue };
            super::protect(page, page + PAGE, range.prot);
            // SAFETY: nobody else writes there while this process has the lock, and the table says that the program may.
            unsafe { core::ptr::copy_nonoverlapping(kept(n), page as *mut u8, PAGE as usize) };
            super::protect(page, page + PAGE, range.prot & !super::PROT_WRITE);
        }
    }
    if !shared_files::is_one(pending) {
        h.unlock();
    }
}
