//! State of the thread that the kernel keeps: passed on, and kept for a restore.

use crate::dispatch::{native, Call, Outcome};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::tracker::Track;
use crate::user;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_GET_GS: u64 = 0x1004;
const PR_SET_NAME: u64 = 15;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

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
        // GS is the engine's; the program's own base is kept beside it.
        nr::ARCH_PRCTL if a[0] == ARCH_SET_GS => {
            t.gs_base = a[1];
            0
        }
        nr::ARCH_PRCTL if a[0] == ARCH_GET_GS => {
            if user::write(a[1], &t.gs_base) {
                0
            } else {
                err::EFAULT
            }
        }
        nr::PRCTL if a[0] == PR_SET_SYSCALL_USER_DISPATCH => err::EINVAL,
        nr::PRCTL if a[0] == PR_SET_NAME => {
            let r = native(call);
            t.read_comm();
            r
        }
        _ => native(call),
    };
    Outcome::Return(r)
}
