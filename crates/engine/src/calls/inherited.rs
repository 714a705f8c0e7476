//! Calls that change what a clone inherits: credentials, capabilities, filters, limits, priorities.
//!
//! None of it is ever read from the store. A restored process has what the kernel gave the anchor, and the anchor is
//! cloned anew from the program after each such call.

use crate::anchor;
use crate::calls::{filters, limits};
use crate::commit::{commit, commit_at_gate, commit_before_call};
use crate::dispatch::{native, Call};
use crate::kept_files;
use crate::mutant::without;
use crate::native;
use crate::own_descriptors;
use crate::proc;
use crate::scheduling;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::Thread;
use crate::user;
use crate::world;
use outlast_calls::Class;
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

const PIVOT_ROOT: u64 = 155;
const CHROOT: u64 = 161;
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

/// Does the call change what a thread is scheduled by? Of several it changes a single one, and not what the anchor has.
fn is_of_a_thread(call: &Call) -> bool {
    const PR_SET_TIMERSLACK: u64 = 29;
    match call.nr {
        SETPRIORITY | SCHED_SETPARAM | SCHED_SETSCHEDULER | SCHED_SETAFFINITY | IOPRIO_SET | SCHED_SETATTR => true,
        nr::PRCTL => call.args[0] == PR_SET_TIMERSLACK,
        _ => false,
    }
}

/// Does the call give the program another root? What it maps has no name there, and anchors share its root. So files are kept first, by an
/// anchor as well that is there before the call.
fn changes_root(call: &Call) -> bool {
    matches!(call.nr, CHROOT | PIVOT_ROOT)
}

/// Device and inode of the root.
fn root() -> [u64; 2] {
    let mut stat = [0u64; 18];
    // SAFETY: the kernel writes 144 bytes.
    unsafe { syscall!(nr::STAT, c"/".as_ptr(), stat.as_mut_ptr()) };
    [stat[0], stat[1]]
}

/// Commits, makes the call, and commits again with an anchor that has inherited what the call changed.
pub fn change(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if filters::is_one(call) {
        return filters::set(e, t, call);
    }
    if filters::binds_one_of_several(call) {
        return filters::leave(t, call);
    }
    let keeping = if changes_root(call) {
        proc::make(e);
        kept_files::pin();
        let seq = commit_before_call(e);
        if seq == 0 {
            return native(call);
        }
        anchor::renew_around(seq, || 0).1
    } else {
        None
    };
    // A path that led to the new root leads elsewhere from there.
    let is_done = changes_root(call) && e.kernel.root != [0; 2] && e.kernel.root != root();
    if changes_root(call) && !is_done {
        (e.kernel.root, e.kernel_dirty) = (root(), true);
    }
    let seq = commit(e, call.pending(pending_kind::REDO));
    if let Some(keeping) = keeping {
        keeping.finish();
    }
    if seq == 0 {
        return if is_done { 0 } else { native(call) };
    }
    if let Some([soft, hard]) = descriptor_limit(e, call) {
        if !own_descriptors::fit(e, soft, hard) {
            native::suspend(Degradation::DescriptorLimit);
            return native(call);
        }
    }
    if world::has_several() && is_of_a_thread(call) {
        let r = native(call);
        scheduling::note_all(t);
        t.regs.rax = r as u64;
        commit_at_gate(e);
        return r;
    }
    let set = |e: &mut Engine| if is_done { 0 } else { limits::set(e, call) };
    let (r, renewal) = if without(Mutant::Heir) { (set(e), None) } else { anchor::renew_around(seq, || set(e)) };
    e.fds.returned(r);
    if r == 0 && changes_root(call) {
        proc::give_up_if_not_needed(e);
    }
    if r == 0 && !proc::can_be_read() {
        native::suspend(Degradation::ProcHidden);
        return r;
    }
    if changes_root(call) {
        (e.kernel.root, e.kernel_dirty) = ([0; 2], true);
    }
    if is_of_a_thread(call) {
        scheduling::note_if_not_inherited(t);
    }
    t.regs.rax = r as u64;
    commit_at_gate(e);
    if let Some(renewal) = renewal {
        renewal.finish();
    }
    r
}
