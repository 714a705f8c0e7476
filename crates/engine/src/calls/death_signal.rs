//! PR_SET_PDEATHSIG of a child: for the kernel its parent is the supervisor, whose end is not what it means.

use crate::children;
use crate::control::control;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::user;
use core::sync::atomic::Ordering::*;

pub const PR_SET_PDEATHSIG: u64 = 1;
pub const PR_GET_PDEATHSIG: u64 = 2;
const SIGNALS: u32 = 64;

/// Is it the supervisor that has to send it?
pub fn is_supervisors() -> bool {
    children::parent().is_some()
}

/// Is it a call that asks which it is?
pub fn asks(call: &Call) -> bool {
    call.nr == nr::PRCTL && call.args[0] == PR_GET_PDEATHSIG && is_supervisors()
}

pub fn ask(e: &Engine, call: &Call) -> i64 {
    match user::write(call.args[1], &e.kernel.death_signal) {
        true => 0,
        false => err::EFAULT,
    }
}

/// Sets it.
pub fn set(e: &mut Engine, signal: u64) -> i64 {
    if signal > SIGNALS.into() {
        return err::EINVAL;
    }
    (e.kernel.death_signal, e.kernel_dirty) = (signal as u32, true);
    tell(e);
    0
}

/// Has the supervisor know it.
pub fn tell(e: &Engine) {
    control().death_signal.store(e.kernel.death_signal, Release);
}
