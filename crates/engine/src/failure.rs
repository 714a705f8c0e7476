//! A fatal signal: rung 1 of the ladder, or the end of it.

use crate::control::{control, event};
use crate::frame::Ucontext;
use crate::gathered;
use crate::mutant::without;
use crate::signals::{self, bit, OWNED};
use crate::state::{engine, Fault};
use crate::sys::{now_ns, nr, syscall};
use crate::thread::{self, Thread};
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::control::state;
use outlast_image::event::event_kind;
use outlast_image::kernel::SignalAction;
use outlast_image::mutant::Mutant;

/// A failure counts as the same one if it has the signal and instruction of the last one and no more commits than
/// this lie between.
const SAME_WITHIN: u64 = 64;

/// Was the signal sent by another process? It is no failure of the program, and comes wherever the program happens to be:
/// it counts as the one before only if nothing was committed in between.
fn is_sent_by_another(info: &[u64; 16]) -> bool {
    // SAFETY: asks for this process's own id.
    let own = unsafe { syscall!(nr::GETPID) };
    info[1] as u32 as i32 <= 0 && info[2] as u32 as i64 != own
}

/// May the program be rolled back once more? Counts the attempt.
fn may_retry(sig: i32, rip: u64, info: &[u64; 16]) -> bool {
    let c = control();
    if c.state.load(Relaxed) != state::PROTECTED || without(Mutant::Rollback) {
        return false;
    }
    let seq = c.last_seq.load(Relaxed);
    let same = c.fault_signal.load(Relaxed) == sig as u32
        && c.fault_rip.load(Relaxed) == rip
        && seq.wrapping_sub(c.fault_seq.load(Relaxed)) <= if is_sent_by_another(info) { 0 } else { SAME_WITHIN };
    let repeats = if same { c.fault_repeats.load(Relaxed) + 1 } else { 1 };
    c.fault_signal.store(sig as u32, Relaxed);
    c.fault_rip.store(rip, Relaxed);
    c.fault_seq.store(seq, Relaxed);
    c.fault_repeats.store(repeats, Relaxed);
    // SAFETY: single thread; only the arguments are read.
    repeats <= unsafe { engine() }.args.retries
}

fn give_up(sig: i32) {
    let c = control();
    if c.state.load(Relaxed) == state::PROTECTED {
        c.state.store(state::GIVEN_UP, Release);
        event(event_kind::GIVE_UP, 7, 0, sig as u64, c.fault_rip.load(Relaxed));
        // SAFETY: the program was in its own code, or at the gate's exit.
        gathered::release(unsafe { engine() });
    }
    set_default(sig);
}

fn set_default(sig: i32) {
    // SAFETY: the default action is what the program would have met without protection.
    unsafe { syscall!(nr::RT_SIGACTION, sig, &raw const DEFAULT, 0, 8) };
}

static DEFAULT: SignalAction = SignalAction { handler: 0, flags: 0, restorer: 0, mask: 0 };

/// A fatal signal interrupted the program's own code: rolls back and does not return, or arranges that the program
/// dies of it when the handler returns.
pub unsafe fn fatal(sig: i32, info: &[u64; 16], uc: &mut Ucontext) {
    if thread::current().native != 0 {
        // A child that shares this memory: its end is not the program's.
        set_default(sig);
    } else {
        if may_retry(sig, uc.regs.rip, info) {
            roll_back(sig, info[2]);
        }
        give_up(sig);
    }
    let synchronous = (info[1] as u32 as i32) > 0 && OWNED & bit(sig) != 0;
    if !synchronous {
        let pid = syscall!(nr::GETPID);
        syscall!(nr::RT_TGSIGQUEUEINFO, pid, syscall!(nr::GETTID), sig, info.as_ptr());
        uc.sigmask &= !bit(sig);
    }
}

/// The same at the gate, for a signal that had been deferred.
pub unsafe fn fatal_at_gate(sig: i32, info: &[u64; 16], t: &mut Thread) {
    if may_retry(sig, t.regs.rip, info) {
        roll_back(sig, info[2]);
    }
    give_up(sig);
    signals::set_kernel_mask(t.mask & !bit(sig));
    syscall!(nr::RT_TGSIGQUEUEINFO, syscall!(nr::GETPID), syscall!(nr::GETTID), sig, info.as_ptr());
}

unsafe fn roll_back(sig: i32, address: u64) -> ! {
    control().rollbacks.fetch_add(1, Relaxed);
    if world::has_several() {
        // All threads go back together, in a process of their own.
        event(event_kind::CRASHED, 2, 0, sig as u64, control().fault_rip.load(Relaxed));
        crate::control::die();
    }
    engine().fault = Fault { signal: sig as u32, address, met_ns: now_ns() };
    crate::on_stack(thread::inner_stack_top(), crate::restore::in_place)
}
