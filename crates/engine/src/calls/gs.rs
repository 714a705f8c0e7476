//! GS is the engine's: it finds its control block by it. A program may have a base of its own there: once one of its threads does,
//! every call traps, signals find the block by the stack that they are taken on, and whoever leaves the engine takes the program's base
//! along.

use crate::dispatch::{Call, Outcome};
use crate::native::{self, way};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::{self, Thread};
use crate::user;
use crate::world;
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_image::degradation::Degradation;

const ARCH_SET_GS: u64 = 0x1001;
/// Bases from here on are refused.
const TASK_SIZE_MAX: u64 = (1 << 47) - 4096;
const AT_NULL: u64 = 0;
const AT_HWCAP2: u64 = 26;
/// Programs may use wrgsbase and its kin.
const HWCAP2_FSGSBASE: u64 = 2;

/// Not 0: outside of the engine GS has the base of [`Thread::gs_base`], in every thread.
pub static OWN_BASES: AtomicU32 = AtomicU32::new(0);

/// Is it a call that sets the base?
pub fn sets(call: &Call) -> bool {
    call.nr == nr::ARCH_PRCTL && call.args[0] == ARCH_SET_GS
}

/// arch_prctl(ARCH_SET_GS).
pub fn set(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    match call.args[1] {
        base if base == t.gs_base => Outcome::Return(0),
        TASK_SIZE_MAX.. => Outcome::Return(err::EPERM),
        _ if !allows(e) => {
            native::suspend(Degradation::GsUsed);
            // The kernel sets it when the engine, which uses its own until then, has been left: the call is made again.
            t.regs.rip -= 2;
            Outcome::Return(call.nr as i64)
        }
        base => {
            t.gs_base = base;
            begin();
            Outcome::Return(0)
        }
    }
}

/// Has a thread a base of its own?
pub fn are_own() -> bool {
    OWN_BASES.load(Acquire) != 0
}

/// Not where pages are tracked by faults: a child that shares the memory goes through the engine without leaving it.
pub fn allows(e: &Engine) -> bool {
    !e.tracker.guards_kernel_writes()
}

/// A thread has a base of its own. Others may be on their way: who comes by a stub finds that it is to trap before it has been made to
/// leave with another base than the engine's.
pub fn begin() {
    if native::WAY.load(Acquire) == way::GATE {
        native::WAY.store(way::TRAP, Release);
    }
    OWN_BASES.store(1, Release);
}

/// All threads of a program that is attached to have come in.
pub fn adopt(e: &Engine) -> Result<(), Degradation> {
    world::each(|place| {
        // SAFETY: they stand still.
        if unsafe { thread::at(place) }.gs_base != 0 {
            begin();
        }
    });
    match are_own() && !allows(e) {
        true => Err(Degradation::GsUsed),
        false => Ok(()),
    }
}

/// In a restore: calls are served again, in whatever way they were.
pub fn choose_way() {
    let way = if are_own() { way::TRAP } else { way::GATE };
    native::WAY.store(way, Release);
}

/// The last thing that a handler does which returns to the program: the base is the program's again.
///
/// # Safety
/// Nothing is done that finds its control block until the next entry.
#[inline(always)]
pub unsafe fn give_back() {
    if are_own() {
        core::arch::asm!("wrgsbase {}", in(reg) thread::current().gs_base, options(nostack));
    }
}

/// Tells a fresh program, whose stack begins at `sp`, that it may not use the instructions that set the base: it asks the kernel then,
/// and so the engine.
pub fn hide_instructions(sp: u64) {
    let word = |at: u64| user::read::<u64>(at);
    let Some(count) = word(sp) else { return };
    // Behind the arguments and their end comes the environment, and behind its end what is wanted.
    let mut at = sp + (count + 2) * 8;
    while word(at).is_some_and(|entry| entry != 0) {
        at += 8;
    }
    at += 8;
    while let (Some(key), Some(value)) = (word(at), word(at + 8)) {
        match key {
            AT_NULL => return,
            AT_HWCAP2 => {
                user::write(at + 8, &(value & !HWCAP2_FSGSBASE));
            }
            _ => {}
        }
        at += 16;
    }
}
