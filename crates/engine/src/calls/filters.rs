//! The program installs filters of system calls (seccomp), and its calls meet them.

use crate::anchor;
use crate::call_filters;
use crate::commit::{commit, commit_at_gate};
use crate::delivery;
use crate::dispatch::{self, native, Call, Outcome};
use crate::failure;
use crate::mutant::without;
use crate::native;
use crate::ring;
use crate::signals::{self, bit, SIGSYS, SIG_IGN};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::{pending_bit, Thread};
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_filter::needs::wish;
use outlast_filter::{Instruction, Verdict, LONGEST};
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

const SECCOMP: u64 = 317;
const PR_SET_SECCOMP: u64 = 22;
/// Of prctl.
const MODE_STRICT: u64 = 1;
const MODE_FILTER: u64 = 2;
/// Of seccomp.
const SET_MODE_STRICT: u64 = 0;
const SET_MODE_FILTER: u64 = 1;

const FILTER_FLAG_TSYNC: u64 = 1;
const FILTER_FLAG_NEW_LISTENER: u64 = 8;

const LANDLOCK_RESTRICT_SELF: u64 = 446;

/// Does the call set what filters the calls of the thread?
pub fn is_one(call: &Call) -> bool {
    call.nr == SECCOMP || call.nr == nr::PRCTL && call.args[0] == PR_SET_SECCOMP
}

/// What is asked for.
enum Wanted {
    /// Nothing but four calls from now on.
    Strict,
    /// The filter that `struct sock_fprog` at this place of the arguments tells of.
    Filter { arg: usize, flags: u64 },
    /// Nothing is changed.
    Other,
}

fn wanted(call: &Call) -> Wanted {
    let a = call.args;
    match (call.nr, a[0], a[1]) {
        (SECCOMP, SET_MODE_STRICT, 0) if a[2] == 0 => Wanted::Strict,
        (SECCOMP, SET_MODE_FILTER, flags) => Wanted::Filter { arg: 2, flags },
        (nr::PRCTL, _, MODE_STRICT) => Wanted::Strict,
        (nr::PRCTL, _, MODE_FILTER) => Wanted::Filter { arg: 2, flags: 0 },
        _ => Wanted::Other,
    }
}

/// Sets a filter. One that the engine cannot live with ends protection first, and the program makes its call by itself.
pub fn set(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let (arg, flags) = match wanted(call) {
        Wanted::Filter { arg, flags } => (arg, flags),
        Wanted::Strict => return leave(t, call),
        Wanted::Other => return native(call),
    };
    // The kernel gets the copy that was looked at: the program's may be another one by then.
    let Some([len, from]) = user::read::<[u64; 2]>(call.args[arg]) else { return err::EFAULT };
    let len = len as u16 as usize;
    if !(1..=LONGEST).contains(&len) {
        return native(call);
    }
    let Some(copy) = call_filters::room(len) else { return leave(t, call) };
    if !user::read_bytes(from, bytemuck::cast_slice_mut(copy)) {
        return err::EFAULT;
    }
    if !is_bearable(copy, flags) {
        return leave(t, call);
    }
    let seq = commit(e, call.pending(pending_kind::REDO));
    if seq == 0 {
        return native(call);
    }
    let program = [len as u64, copy.as_ptr() as u64];
    let mut own = *call;
    own.args[arg] = program.as_ptr() as u64;
    let (r, renewal) = anchor::renew_around(seq, || {
        let r = native(&own);
        if r == 0 {
            // Before there is an anchor that is bound by it, too.
            call_filters::installed(len);
        }
        r
    });
    if r == 0 {
        dispatch::slow_down_filtered();
        give_up_ring(e);
    }
    t.regs.rax = r as u64;
    commit_at_gate(e);
    if let Some(renewal) = renewal {
        renewal.finish();
    }
    r
}

/// Can the engine go on under the filter? A recovered process has the same filters in all threads.
fn is_bearable(filter: &[Instruction], flags: u64) -> bool {
    let several = world::has_several();
    (call_filters::suits(filter) || without(Mutant::FilterNeeds))
        && flags & FILTER_FLAG_NEW_LISTENER == 0
        && (!several || flags & FILTER_FLAG_TSYNC != 0 && call_filters::lets_pass(filter, wish::USERFAULTFD))
}

/// Where the filters do not allow io_uring there is no ring any more. Right after a commit that stands before none of its operations.
fn give_up_ring(e: &mut Engine) {
    if e.ring.available() && !wish::IO_URING.into_iter().all(call_filters::permit) {
        ring::give_up(e);
    }
}

/// Ends protection, and has the program make its call, of which there was nothing yet.
pub fn leave(t: &mut Thread, call: &Call) -> i64 {
    native::suspend(Degradation::CallFilter);
    native::await_others(t);
    t.regs.rip -= 2;
    call.nr as i64
}

/// Does the call bind one thread of several to a ruleset of Landlock? A recovered process would have it in all.
pub fn binds_one_of_several(call: &Call) -> bool {
    call.nr == LANDLOCK_RESTRICT_SELF && world::has_several()
}

/// What comes of a call that the filters do not let pass; None: they do.
pub fn refuse(t: &mut Thread, call: &Call) -> Option<Outcome> {
    if without(Mutant::CallFilters) {
        return None;
    }
    let address = crate::rewrite::to_program(t.regs.rip);
    match call_filters::judge(call, address) {
        Verdict::Allowed => None,
        Verdict::Errno(number) => Some(Outcome::Return(-(number as i64))),
        // Nobody traces, and nobody listens.
        Verdict::Trace | Verdict::Notify => Some(Outcome::Return(err::ENOSYS)),
        Verdict::Trap(data) => Some(trap(t, call, information(call, address, data))),
        Verdict::KillThread if world::has_several() && world::count() > 1 => {
            super::thread_end::end(t, SIGSYS as u64);
        }
        Verdict::KillThread | Verdict::KillProcess => Some(kill(t, call, information(call, address, 0))),
    }
}

/// `struct siginfo` of a call that a filter has caught.
fn information(call: &Call, address: u64, data: u16) -> [u64; 16] {
    const SYS_SECCOMP: u64 = 1;
    const AUDIT_ARCH_X86_64: u64 = 0xc000_003e;
    let mut info = [0; 16];
    info[0] = SIGSYS as u64 | (data as u64) << 32;
    info[1] = SYS_SECCOMP;
    info[2] = address;
    info[3] = call.nr & 0xffff_ffff | AUDIT_ARCH_X86_64 << 32;
    info
}

/// The program's handler of SIGSYS has its turn, with the registers of the call.
fn trap(t: &mut Thread, call: &Call, info: [u64; 16]) -> Outcome {
    // SAFETY: the caller has the engine's lock.
    let action = unsafe { crate::state::engine() }.kernel.actions[SIGSYS as usize];
    if t.mask & bit(SIGSYS) != 0 || action.handler <= SIG_IGN {
        return kill(t, call, info);
    }
    // There is one place for a signal that met the engine.
    signals::block_all();
    t.regs.rax = call.nr;
    if t.pending.load(Acquire) & pending_bit::SIGNAL != 0 {
        // That one first; then the program makes its call again.
        t.regs.rip -= 2;
    } else {
        delivery::defer(t, &info);
    }
    Outcome::Registers
}

/// The kernel would end the process; that is a failure of the program's like others.
fn kill(t: &mut Thread, call: &Call, info: [u64; 16]) -> Outcome {
    t.regs.rax = call.nr;
    // SAFETY: at the gate.
    unsafe { failure::fatal_at_gate(SIGSYS, &info, t) };
    Outcome::Registers
}
