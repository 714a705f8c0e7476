//! Calls that change what a clone inherits: credentials, capabilities, filters, limits, priorities.
//!
//! None of it is ever read from the store. A restored process has what the kernel gave the anchor, and the anchor is
//! cloned anew from the program after each such call.

use crate::anchor;
use crate::commit::{commit, commit_at_gate};
use crate::dispatch::{native, Call};
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use outlast_image::context::pending_kind;

const SETRLIMIT: u64 = 160;
const PRLIMIT64: u64 = 302;
const SETPRIORITY: u64 = 141;
const SCHED_SETPARAM: u64 = 142;
const SCHED_SETSCHEDULER: u64 = 144;
const SCHED_SETAFFINITY: u64 = 203;
const IOPRIO_SET: u64 = 251;
const SCHED_SETATTR: u64 = 314;

/// Options of prctl that a clone inherits and that are about security or limits: PR_SET_KEEPCAPS, PR_SET_SECCOMP,
/// PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE, PR_CAP_AMBIENT,
/// PR_SET_SPECULATION_CTRL, PR_SET_MDWE.
const PRCTL: [u64; 10] = [8, 22, 24, 28, 29, 38, 41, 47, 53, 65];

/// Is this a prctl whose effect a clone inherits?
pub fn by_prctl(call: &Call) -> bool {
    call.nr == nr::PRCTL && PRCTL.contains(&call.args[0])
}

/// Is this an idempotent call whose effect a clone inherits?
pub fn by_redo(call: &Call) -> bool {
    match call.nr {
        PRLIMIT64 => call.args[2] != 0,
        SETRLIMIT | SETPRIORITY | SCHED_SETPARAM | SCHED_SETSCHEDULER | SCHED_SETAFFINITY | IOPRIO_SET
        | SCHED_SETATTR => true,
        _ => false,
    }
}

/// Commits, makes the call, and commits again with an anchor that has inherited what the call changed.
pub fn change(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let seq = commit(e, call.pending(pending_kind::REDO));
    if seq == 0 {
        return native(call);
    }
    let (r, renewal) = anchor::renew_around(seq, || native(call));
    t.regs.rax = r as u64;
    commit_at_gate(e);
    if let Some(renewal) = renewal {
        renewal.finish();
    }
    r
}
