//! A thread ends, and others go on. What the kernel does at a thread's end to the program's memory the engine does itself,
//! before it forgets the thread: a commit holds either a thread, or all that its end means to the others.

use super::inheriting::{OWNER_DIED, TID, WAITERS};
use crate::dispatch::Call;
use crate::numbers;
use crate::state::engine;
use crate::sys::{nr, syscall};
use crate::thread::{standing, Thread};
use crate::tracker::Track;
use crate::user;
use crate::world;
use core::arch::asm;
use core::sync::atomic::Ordering::Release;

/// Locks of a list at most, as in the kernel.
const LOCKS: usize = 2048;

/// Ends the running thread, which is not the last.
pub fn end(t: &mut Thread, status: u64) -> ! {
    // SAFETY: from here on the kernel leaves the thread's memory alone, which may soon be another's.
    unsafe {
        if t.rseq[0] != 0 {
            syscall!(nr::RSEQ, t.rseq[0], t.rseq[1], 1, t.rseq[2]);
            // Whether it was in doubt (`world::each_in_doubt`) nobody will know any more.
            engine().tracker.written(t.rseq[0] & !4095);
        }
        release_robust(t);
        syscall!(nr::SET_ROBUST_LIST, 0, t.robust_list[1]);
        syscall!(nr::SET_TID_ADDRESS, 0);
    }
    if t.tid_address != 0 && user::write(t.tid_address, &0u32) {
        wake(t.tid_address, i32::MAX as u64);
    }
    world::leave(t.place);
    t.standing.store(standing::AT_REST, Release);
    let all = !0u64;
    // SAFETY: nothing may find this thread in the engine any more.
    unsafe { syscall!(nr::RT_SIGPROCMASK, 2, &raw const all, 0, 8) };
    world::unlock(t);
    // SAFETY: the thread ends; its place is not given to another before it has.
    unsafe { asm!("syscall", in("rax") nr::EXIT, in("rdi") status, options(noreturn)) }
}

/// Robust locks that the thread still holds are marked as an exiting thread's.
fn release_robust(t: &Thread) {
    let Some([first, offset, pending]) = user::read::<[u64; 3]>(t.robust_list[0]).filter(|_| t.robust_list[0] != 0)
    else {
        return;
    };
    let mut entry = first;
    for _ in 0..LOCKS {
        if entry & !1 == t.robust_list[0] {
            break;
        }
        if entry & !1 != pending & !1 {
            release(t, entry, offset);
        }
        let Some(next) = user::read::<u64>(entry & !1) else { break };
        entry = next;
    }
    if pending != 0 {
        release(t, pending, offset);
    }
}

/// Marks the lock of an entry, whose lowest bit says that its waiters inherit priority: those the kernel has, and hands the lock
/// on to one of them when the thread ends for it, too.
fn release(t: &Thread, entry: u64, offset: u64) {
    let word = (entry & !1).wrapping_add(offset);
    let kernel_hands_on = entry & 1 != 0 && !numbers::differ();
    while let Some(value) = user::read::<u32>(word).filter(|value| value & TID == t.tid && word % 4 == 0) {
        match user::swap(word, value, value & WAITERS | OWNER_DIED) {
            Some(true) if value & WAITERS != 0 && !kernel_hands_on => return wake(word, 1),
            Some(false) => {}
            _ => return,
        }
    }
}

/// Wakes whoever waits for the word, as the kernel would: those of other processes, too.
fn wake(word: u64, most: u64) {
    const FUTEX_WAKE: u64 = 1;
    const FUTEX_PRIVATE_FLAG: u64 = 128;
    for operation in [FUTEX_WAKE, FUTEX_WAKE | FUTEX_PRIVATE_FLAG] {
        // SAFETY: wakes only.
        unsafe { syscall!(nr::FUTEX, word, operation, most) };
    }
}

/// Does the program go on without the thread?
pub fn is_one_of_several(call: &Call) -> bool {
    call.nr == nr::EXIT && world::has_several() && world::count() > 1
}
