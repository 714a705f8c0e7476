//! State of the thread that the kernel keeps: passed on, and kept for a restore.

use super::death_signal::{self, PR_GET_PDEATHSIG, PR_SET_PDEATHSIG};
use crate::control::control;
use crate::dispatch::{native, Call, Outcome};
use crate::mutant::without;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::tracker::Track;
use crate::user;
use core::sync::atomic::Ordering::Acquire;
use outlast_image::mutant::Mutant;

const ARCH_GET_GS: u64 = 0x1004;
const PR_SET_DUMPABLE: u64 = 4;
const PR_SET_NAME: u64 = 15;
const PR_SET_CHILD_SUBREAPER: u64 = 36;
const PR_GET_CHILD_SUBREAPER: u64 = 37;
const MEMBARRIER: u64 = 324;
/// GLOBAL_EXPEDITED, PRIVATE_EXPEDITED, PRIVATE_EXPEDITED_SYNC_CORE and PRIVATE_EXPEDITED_RSEQ: what has to be registered.
const REGISTERING: [u64; 4] = [1 << 2, 1 << 4, 1 << 6, 1 << 8];
const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

/// prctl has given `option` a new `value`: what no clone inherits is kept.
fn process_state(e: &mut Engine, option: u64, value: u32) {
    let kept = match option {
        PR_SET_PDEATHSIG => &mut e.kernel.death_signal,
        PR_SET_CHILD_SUBREAPER => &mut e.kernel.subreaper,
        PR_SET_DUMPABLE => &mut e.kernel.undumpable,
        _ => return,
    };
    *kept = if option == PR_SET_DUMPABLE { (value == 0) as u32 } else { value };
    e.kernel_dirty = true;
}

/// Reads what an execve leaves as it was.
pub fn read_process_state(e: &mut Engine) {
    let mut value = 0u32;
    // SAFETY: the kernel writes four bytes.
    unsafe {
        if death_signal::is_supervisors() {
            e.kernel.death_signal = control().death_signal.load(Acquire);
        } else if syscall!(nr::PRCTL, PR_GET_PDEATHSIG, &raw mut value) == 0 {
            e.kernel.death_signal = value;
        }
        if syscall!(nr::PRCTL, PR_GET_CHILD_SUBREAPER, &raw mut value) == 0 {
            e.kernel.subreaper = value;
        }
    }
}

/// Sets in a process that was made anew what [`process_state`] keeps.
pub fn restore_process_state(e: &Engine) {
    let (k, prctl) = (&e.kernel, |option: u64, value: u32| {
        // SAFETY: changes no memory.
        unsafe { syscall!(nr::PRCTL, option, value, 0, 0, 0) };
    });
    if death_signal::is_supervisors() {
        death_signal::tell(e);
    } else if k.death_signal != 0 {
        prctl(PR_SET_PDEATHSIG, k.death_signal);
    }
    if k.subreaper != 0 {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    if k.undumpable != 0 {
        prctl(PR_SET_DUMPABLE, 0);
    }
    for command in REGISTERING {
        if k.barriers as u64 & command != 0 && !without(Mutant::Barriers) {
            // SAFETY: registers this process; the kernel has forgotten what its predecessor had registered.
            unsafe { syscall!(MEMBARRIER, command, 0, 0) };
        }
    }
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    let a = call.args;
    let r = match call.nr {
        nr::SET_TID_ADDRESS => {
            t.tid_address = a[0];
            native(call);
            t.tid as i64
        }
        nr::SET_ROBUST_LIST => {
            let r = native(call);
            if r == 0 {
                t.robust_list = [a[0], a[1]];
            }
            r
        }
        nr::RSEQ => {
            // The kernel writes there whenever the thread was interrupted.
            e.tracker.pin(a[0] & !4095);
            let r = native(call);
            if r == 0 {
                t.rseq = if a[2] & 1 != 0 { [0; 3] } else { [a[0], a[1], a[3]] };
            }
            r
        }
        // See `super::gs`.
        nr::ARCH_PRCTL if a[0] == ARCH_GET_GS => {
            if user::write(a[1], &t.gs_base) {
                0
            } else {
                err::EFAULT
            }
        }
        nr::PRCTL if a[0] == PR_SET_SYSCALL_USER_DISPATCH => err::EINVAL,
        // AMX, whose state the engine does not save: programs do without where there is none.
        nr::ARCH_PRCTL if a[0] == ARCH_REQ_XCOMP_PERM => err::EOPNOTSUPP,
        MEMBARRIER => {
            let r = native(call);
            if r == 0 && REGISTERING.contains(&(a[0] as u32 as u64)) {
                e.kernel.barriers |= a[0] as u32;
                e.kernel_dirty = true;
            }
            r
        }
        nr::PRCTL if a[0] == PR_SET_NAME => {
            let r = native(call);
            t.read_comm();
            r
        }
        nr::PRCTL if death_signal::asks(call) => death_signal::ask(e, call),
        nr::PRCTL if a[0] == PR_SET_PDEATHSIG && death_signal::is_supervisors() => death_signal::set(e, a[1]),
        nr::PRCTL => {
            let r = native(call);
            if r == 0 {
                process_state(e, a[0], a[1] as u32);
            }
            r
        }
        _ => native(call),
    };
    Outcome::Return(r)
}
