//! GS is the engine's: it finds its control block by it. A program that needs a base of its own there is left alone.

use crate::dispatch::{Call, Outcome};
use crate::native;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;
use outlast_image::degradation::Degradation;

const ARCH_SET_GS: u64 = 0x1001;
/// Bases from here on are refused.
const TASK_SIZE_MAX: u64 = (1 << 47) - 4096;
const AT_NULL: u64 = 0;
const AT_HWCAP2: u64 = 26;
/// Programs may use wrgsbase and its kin.
const HWCAP2_FSGSBASE: u64 = 2;

/// Is it a call that sets the base?
pub fn sets(call: &Call) -> bool {
    call.nr == nr::ARCH_PRCTL && call.args[0] == ARCH_SET_GS
}

/// arch_prctl(ARCH_SET_GS): the first base that is not 0 ends protection, since what the program finds there must be its own.
pub fn set(_: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    match call.args[1] {
        base if base == t.gs_base => Outcome::Return(0),
        TASK_SIZE_MAX.. => Outcome::Return(err::EPERM),
        _ => {
            native::suspend(Degradation::GsUsed);
            // The kernel sets it when the engine, which uses its own until then, has been left: the call is made again.
            t.regs.rip -= 2;
            Outcome::Return(call.nr as i64)
        }
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
