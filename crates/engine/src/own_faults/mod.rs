//! Memory whose page faults the program serves itself (userfaultfd).
//!
//! The kernel lets one userfaultfd have a range, so that the program's must do there what the tracker's does elsewhere: the engine
//! has it keep track of writes besides (`WP_ASYNC`), which the program does not see. What is missing there is a part of the state: the
//! program is asked for it, again after a recovery. The engine must not touch a missing page: it would wait, under its lock, for
//! a thread that waits for the lock. So it asks the kernel first; to a call of the program's that is EFAULT, as it is to the
//! kernel's own calls where a userfaultfd serves faults of user mode alone.

pub mod compared;
mod keeping;
pub mod kernel;
pub mod messages;
mod ranges;
mod restoring;

pub use compared::PLACES as COMPARED;
pub use keeping::{load, save};
pub use ranges::COMPARED as COMPARED_RANGE;
pub use ranges::{are_lost, each as each_range, gaps, has_any as has_ranges, has_room, meets, serves, tracked, Range};
pub use restoring::{give_back, is_one, restore, tell_of_writes};

use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::user;
use crate::world;
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

pub const REGISTER_MISSING: u64 = 1;
pub const REGISTER_WP: u64 = 2;
/// Who meets a missing page gets a signal.
pub const SIGBUS: u64 = 1 << 7;
/// What the engine wants of the program's besides: that writes are noted without anybody being told (and, for memory that is shared, that
/// it can be).
pub const TRACKING: u64 = 1 << 15 | 1 << 12;

/// Bits of a context's state.
pub mod context_state {
    /// It has been told which interface it is to have.
    pub const READY: u64 = 1;
    /// The program has waited for its messages itself.
    pub const READ: u64 = 2;
    /// No page fault of the kernel's own ever waits.
    pub const USER_MODE_ONLY: u64 = 4;
    /// It tells the program of writes, and not the engine.
    pub const TELLS: u64 = 8;
}

/// A userfaultfd: the open file, whatever numbers it has.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Context {
    /// What tells it from all others; 0: there is none.
    pub inode: u64,
    pub device: u64,
    /// What the program has asked for.
    pub features: u64,
    /// Bits of [`context_state`].
    pub state: u64,
}

/// Contexts at most.
pub const CONTEXTS: usize = 16;

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Contexts or ranges are not those in the store.
static CHANGED: AtomicBool = AtomicBool::new(false);
/// There may be pages that are present and hold the kernel's zeroes.
static HAS_ZEROES: AtomicBool = AtomicBool::new(false);
/// They may be others than those in the store.
static ZEROES_CHANGED: AtomicBool = AtomicBool::new(false);
/// The program may have protected other pages against writing than those in the store.
static PROTECTED_CHANGED: AtomicBool = AtomicBool::new(false);

static mut TABLE: [Context; CONTEXTS] = [Context { inode: 0, device: 0, features: 0, state: 0 }; CONTEXTS];

/// # Safety
/// The caller has the engine's lock, and does not keep what it gets.
unsafe fn table() -> &'static mut [Context; CONTEXTS] {
    let this = &raw mut TABLE;
    &mut *this
}

/// Does the program have a userfaultfd?
#[inline(always)]
pub fn any() -> bool {
    COUNT.load(Relaxed) != 0
}

fn count_again() {
    // SAFETY: under the lock.
    let count = unsafe { table() }.iter().filter(|context| context.inode != 0).count();
    COUNT.store(count, Relaxed);
    CHANGED.store(true, Relaxed);
    kernel::count_again();
}

/// Device and inode of a descriptor.
pub fn identity(fd: i32) -> Option<(u64, u64)> {
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes.
    (unsafe { syscall!(nr::FSTAT, fd, st.as_mut_ptr()) } == 0).then_some((st[0], st[1]))
}

/// The program has got one. False: there is no room for it.
pub fn opened(fd: i32, state: u64) -> bool {
    // SAFETY: under the lock.
    let place = unsafe { table() }.iter_mut().find(|context| context.inode == 0);
    let (Some(place), Some((device, inode))) = (place, identity(fd)) else { return false };
    *place = Context { inode, device, features: 0, state };
    count_again();
    true
}

/// The context that a descriptor stands for.
pub fn of(fd: i32) -> Option<Context> {
    if !any() {
        return None;
    }
    let (device, inode) = identity(fd)?;
    // SAFETY: under the lock.
    unsafe { table() }.iter().find(|context| (context.device, context.inode) == (device, inode)).copied()
}

/// Is it one whose messages the program is about to wait for?
pub fn is_read(fd: i32) -> bool {
    let Some(context) = of(fd) else { return false };
    if context.state & context_state::READ == 0 {
        set(Context { state: context.state | context_state::READ, ..context });
    }
    true
}

/// What is known of a context has changed.
pub fn set(new: Context) {
    // SAFETY: under the lock.
    if let Some(context) = unsafe { table() }.iter_mut().find(|context| context.inode == new.inode) {
        *context = new;
        CHANGED.store(true, Relaxed);
        kernel::count_again();
    }
}

/// Would a child be the only one to serve faults? The one that it has could not be given to it again.
pub fn are_left_to_others() -> bool {
    if !any() || world::has_several() {
        return false;
    }
    let mut found = false;
    ranges::each(|range| {
        // SAFETY: under the lock.
        let owner = unsafe { table() }.iter().find(|context| context.inode == range.owner);
        found |=
            owner.is_some_and(|context| context.state & context_state::READ == 0 && context.features & SIGBUS == 0);
    });
    found
}

/// Descriptors were closed: what a context served that has none any more is memory like any other.
pub fn settle(e: &mut Engine) {
    if !any() {
        return;
    }
    // SAFETY: under the lock.
    for context in unsafe { *table() }.into_iter().filter(|context| context.inode != 0) {
        if (0..e.fds.end()).any(|fd| e.fds.is_open(fd) && identity(fd) == Some((context.device, context.inode))) {
            continue;
        }
        // SAFETY: under the lock.
        unsafe { table() }.iter_mut().filter(|c| c.inode == context.inode).for_each(|c| *c = Context::default());
        count_again();
        ranges::each(|range| {
            if range.owner == context.inode {
                released(e, range.start, range.end);
            }
        });
    }
}

/// The kernel asks nobody for pages of a range any more.
pub fn released(e: &mut Engine, start: u64, end: u64) {
    forget(start, end);
    e.tracker.cover_again(start, end);
    e.maps_dirty = true;
}

/// Nothing of a range is the program's to serve any more.
pub fn forget(start: u64, end: u64) {
    if has_ranges() && start < end && ranges::remove(start, end) {
        CHANGED.store(true, Relaxed);
        content_changed();
    }
}

/// From now on a range is served by a context. False: there is no room for it.
pub fn registered(e: &mut Engine, range: Range) -> bool {
    CHANGED.store(true, Relaxed);
    e.tracker.zeroes(range.start, range.end, &mut |_, _| zeroes_may_exist());
    ranges::remove(range.start, range.end);
    if range.is_compared() {
        compared::forget();
        protection_changed();
    }
    ranges::insert(range)
}

/// A mapping was moved, and may have been cut off or extended. What moves leaves its userfaultfd; what grows where it is does not.
pub fn moved(old: (u64, u64), new: (u64, u64), keep_old: bool) {
    if !has_ranges() {
        return;
    }
    if old.0 != new.0 {
        forget(new.0, new.1);
        if !keep_old {
            forget(old.0, old.1);
        }
        return;
    }
    forget(new.1, old.1);
    if new.1 > old.1 {
        forget(old.1, new.1);
        let mut last = None;
        ranges::each(|range| last = last.or((range.end == old.1).then_some(range)));
        if let Some(range) = last {
            ranges::remove(range.start, range.end);
            ranges::insert(Range { end: new.1, ..range });
            CHANGED.store(true, Relaxed);
        }
    }
}

/// There may be pages of the kernel's zeroes.
pub fn zeroes_may_exist() {
    HAS_ZEROES.store(true, Relaxed);
    ZEROES_CHANGED.store(true, Relaxed);
}

/// The program has protected pages against writing, or pages that it had protected were written or are gone.
pub fn protection_changed() {
    PROTECTED_CHANGED.store(true, Relaxed);
    // A page of zeroes that is protected must be there.
    ZEROES_CHANGED.store(true, Relaxed);
}

/// Pages may have come to be missing.
pub fn content_changed() {
    if ranges::has_compared() {
        protection_changed();
    }
    if HAS_ZEROES.load(Relaxed) {
        ZEROES_CHANGED.store(true, Relaxed);
    }
}

/// May the engine read the program's memory there, without waiting for the program?
#[inline(always)]
pub fn may_read(start: u64, len: u64) -> bool {
    !has_ranges() || can_touch(start, len, false)
}

/// The same for writing.
#[inline(always)]
pub fn may_write(start: u64, len: u64) -> bool {
    !has_ranges() || can_touch(start, len, true)
}

#[cold]
fn can_touch(start: u64, len: u64, write: bool) -> bool {
    let (low, high) = (start & !4095, start.saturating_add(len).saturating_add(4095) & !4095);
    let mut may = true;
    ranges::each(|range| {
        let (low, high) = (low.max(range.start), high.min(range.end));
        if low >= high {
            return;
        }
        // SAFETY: only asks the kernel.
        let tracker = unsafe { &crate::state::engine().tracker };
        may &= range.modes & REGISTER_MISSING == 0 || tracker.are_present(low, high);
        may &= !write || !range.is_compared() || !tracker.any_protected(low, high);
    });
    may
}

/// Does a message hand one of the program's userfaultfds to somebody else, who would serve it?
pub fn hands_over([at, len]: [u64; 2]) -> bool {
    const SCM_RIGHTS_OF_SOCKET: u64 = 1 << 32 | 1;
    let (Some([length, kind]), true) = (user::read::<[u64; 2]>(at), any() && len >= 16) else { return false };
    let fds = (16..length.min(len).min(2048)).step_by(4);
    kind == SCM_RIGHTS_OF_SOCKET && fds.filter_map(|n| user::read::<i32>(at + n)).any(|fd| of(fd).is_some())
}

/// A fresh process, or one that becomes another.
pub fn reset() {
    // SAFETY: nobody else uses the engine.
    *unsafe { table() } = [Context::default(); CONTEXTS];
    ranges::reset();
    COUNT.store(0, Relaxed);
    for flag in [&CHANGED, &HAS_ZEROES, &ZEROES_CHANGED, &PROTECTED_CHANGED] {
        flag.store(false, Relaxed);
    }
}
