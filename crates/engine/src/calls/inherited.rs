//! Calls that change what a clone inherits: credentials, capabilities, filters, limits, priorities.
//!
//! None of it is ever read from the store. A restored process has what the kernel gave the anchor, and the anchor is
//! cloned anew from the program after each such call.

use crate::anchor;
use crate::calls::{filters, limits};
use crate::commit::{commit, commit_at_gate};
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::native;
use crate::own_descriptors;
use crate::regions;
use crate::scheduling;
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use crate::user;
use crate::world;
use outlast_calls::Class;
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

const SETRLIMIT: u64 = 160;
const RLIMIT_NOFILE: u64 = 7;
const PERSONALITY: u64 = 135;
const SET_MEMPOLICY: u64 = 238;
const SETPRIORITY: u64 = 141;
const SCHED_SETPARAM: u64 = 142;
const SCHED_SETSCHEDULER: u64 = 144;
const SCHED_SETAFFINITY: u64 = 203;
const IOPRIO_SET: u64 = 251;
const SCHED_SETATTR: u64 = 314;

/// Options of prctl that a clone inherits and that are about security or limits: PR_SET_KEEPCAPS, PR_SET_SECCOMP,
/// PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE, PR_CAP_AMBIENT,
/// PR_MCE_KILL, PR_SET_SPECULATION_CTRL, PR_SET_IO_FLUSHER, PR_SET_MDWE, PR_SET_MEMORY_MERGE.
const PRCTL: [u64; 13] = [8, 22, 24, 28, 29, 33, 38, 41, 47, 53, 57, 65, 67];

/// Is this a change of a thread's state that a clone inherits?
pub fn by_thread(call: &Call) -> bool {
    match call.nr {
        nr::PRCTL => PRCTL.contains(&call.args[0]),
        PERSONALITY => call.args[0] != u32::MAX as u64,
        SET_MEMPOLICY => true,
        _ => false,
    }
}

/// Is this an idempotent call whose effect a clone inherits?
pub fn by_redo(call: &Call) -> bool {
    match call.nr {
        nr::PRLIMIT64 => call.args[2] != 0,
        SETRLIMIT | SETPRIORITY | SCHED_SETPARAM | SCHED_SETSCHEDULER | SCHED_SETAFFINITY | IOPRIO_SET
        | SCHED_SETATTR => true,
        _ => false,
    }
}

/// The limit on descriptor numbers that the call sets for this process: soft and hard.
fn descriptor_limit(e: &Engine, call: &Call) -> Option<[u64; 2]> {
    let a = call.args;
    match call.nr {
        SETRLIMIT if a[0] == RLIMIT_NOFILE => user::read(a[1]),
        nr::PRLIMIT64 if a[1] == RLIMIT_NOFILE && (a[0] == 0 || a[0] == e.kernel.pid as u64) => user::read(a[2]),
        _ => None,
    }
}

/// Is it a call of any of these kinds?
pub fn is_one(call: &Call) -> bool {
    let security = outlast_calls::row(call.nr).is_some_and(|row| row.class == Class::Security);
    security || by_thread(call) || by_redo(call)
}

/// Does the call change a single thread of several, and not what the anchor has?
fn is_of_a_thread(call: &Call) -> bool {
    const PR_SET_TIMERSLACK: u64 = 29;
    world::has_several()
        && match call.nr {
            SETPRIORITY | SCHED_SETPARAM | SCHED_SETSCHEDULER | SCHED_SETAFFINITY | IOPRIO_SET | SCHED_SETATTR => true,
            nr::PRCTL => call.args[0] == PR_SET_TIMERSLACK,
            _ => false,
        }
}

/// Commits, makes the call, and commits again with an anchor that has inherited what the call changed.
pub fn change(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if filters::is_one(call) {
        return filters::set(e, t, call);
    }
    if filters::binds_one_of_several(call) {
        return filters::leave(t, call);
    }
    let seq = commit(e, call.pending(pending_kind::REDO));
    if seq == 0 {
        return native(call);
    }
    if let Some([soft, hard]) = descriptor_limit(e, call) {
        if !own_descriptors::fit(e, soft, hard) {
            native::suspend(Degradation::DescriptorLimit);
            return native(call);
        }
    }
    if is_of_a_thread(call) {
        let r = native(call);
        scheduling::note_all(t);
        t.regs.rax = r as u64;
        commit_at_gate(e);
        return r;
    }
    let set = |e: &mut Engine| limits::set(e, call);
    let (r, renewal) = if without(Mutant::Heir) { (set(e), None) } else { anchor::renew_around(seq, || set(e)) };
    e.fds.returned(r);
    if r == 0 && !regions::can_be_read() {
        native::suspend(Degradation::ProcHidden);
        return r;
    }
    t.regs.rax = r as u64;
    commit_at_gate(e);
    if let Some(renewal) = renewal {
        renewal.finish();
    }
    r
}
