//! Alarms every few milliseconds, with a handler installed with SA_RESTART, in a child.

use crate::arena::Arena;
use crate::child::{exit, own};
use crate::raw::syscall;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const RT_SIGACTION: u64 = 13;
const SETITIMER: u64 = 38;
const SIGALRM: u64 = 14;
const SA_RESTART_RESTORER: u64 = 0x1400_0000;
const INTERVAL_US: u64 = 3000;
/// After so many alarms the call is held to be one that is issued again for ever.
const FOREVER: u32 = 400;
/// Exit status of a child whose call did not come back.
pub const NEVER_RETURNED: u64 = 9;

static ALARMS: AtomicU32 = AtomicU32::new(0);
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(std::ptr::null_mut());

std::arch::global_asm!(".globl outlast_restorer", "outlast_restorer:", "mov eax, 15", "syscall");

unsafe extern "C" {
    fn outlast_restorer();
}

/// Counts; from the second alarm on makes the arena's feeding call.
extern "C" fn handler(_signal: i32) {
    let alarms = ALARMS.fetch_add(1, Ordering::Relaxed) + 1;
    if alarms > FOREVER {
        exit(NEVER_RETURNED);
    }
    // SAFETY: set by `start` in this process, to an arena that outlives it.
    let arena = unsafe { &*ARENA.load(Ordering::Relaxed) };
    if let (Some((nr, args)), true) = (arena.feed, alarms > 1) {
        // SAFETY: a call of the probe's, with addresses inside the arena.
        unsafe { syscall(nr, own(arena, args)) };
    }
}

/// Starts the alarms. For the child only: the statics are its own copy.
pub fn start(arena: &Arena) {
    ARENA.store(std::ptr::from_ref(arena).cast_mut(), Ordering::Relaxed);
    let action = [handler as *const () as u64, SA_RESTART_RESTORER, outlast_restorer as *const () as u64, 0];
    let timer = [0, INTERVAL_US, 0, INTERVAL_US];
    // SAFETY: a valid handler and restorer; both arrays live through the calls.
    unsafe {
        syscall(RT_SIGACTION, [SIGALRM, action.as_ptr() as u64, 0, 8, 0, 0]);
        syscall(SETITIMER, [0, timer.as_ptr() as u64, 0, 0, 0, 0]);
    }
}
