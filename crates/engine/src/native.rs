//! Leaving the program to the kernel: in children, and when protection is suspended.

use crate::calls::gs;
use crate::control::{control, degrade, event};
use crate::frame::{self, Signal, Ucontext, Vector, SS_DISABLE};
use crate::gathered;
use crate::handlers;
use crate::held;
use crate::inputs;
use crate::lag;
use crate::noted::completions;
use crate::numbers;
use crate::periodic;
use crate::program_rings;
use crate::replies;
use crate::shared_memory;
use crate::signals;
use crate::state::{engine, Engine};
use crate::sys::{err, nr, syscall};
use crate::thread::{self, Thread};
use crate::tracker::Track;
use crate::world;
use core::sync::atomic::{fence, AtomicU32, Ordering::*};
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use outlast_image::event::event_kind;
use outlast_image::kernel::SignalAction;
use outlast_image::layout::{ENGINE_FDS, SCRATCH_BASE, SCRATCH_ROOM, STORE_BASE, STORE_LEN};

const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

/// How calls of all threads are served: one of [`way`].
pub static WAY: AtomicU32 = AtomicU32::new(way::GATE);

/// Values of [`WAY`].
pub mod way {
    /// Rewritten sites jump to the gate, others trap.
    pub const GATE: u32 = 0;
    /// By the kernel: the gate sends back whatever comes.
    pub const NATIVE: u32 = 1;
    /// All of them trap, those in the stubs of rewritten sites as well: GS is the program's. See [`crate::calls::gs`].
    pub const TRAP: u32 = 2;
}

/// Has the engine left the program alone?
pub fn is_everywhere() -> bool {
    WAY.load(Acquire) == way::NATIVE
}

/// Arms dispatch: every system call outside the engine's text raises SIGSYS.
pub fn dispatch_on() -> i64 {
    let (start, len) = handlers::text();
    // SAFETY: dispatch changes no memory.
    unsafe { syscall!(nr::PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 1, start, len, 0) }
}

/// Gives the kernel what the program believes it has, and takes the engine out of the way: from here on system
/// calls, signals and the alternate stack are native. Rewritten sites reach the gate, which sends them back.
/// `may_be_knocked_at`: by somebody who does not know yet, which ends a process that is not prepared for it.
pub fn become_native(may_be_knocked_at: bool) {
    // SAFETY: single thread, on the engine's stack.
    unsafe {
        let (e, t) = (engine(), thread::current());
        t.native = 1;
        WAY.store(way::NATIVE, Release);
        e.tracker.release();
        syscall!(nr::PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
        for sig in 1..=64usize {
            let a = &e.kernel.actions[sig];
            let ours = a.handler > 1 || (signals::FATAL | signals::OWNED) >> (sig - 1) & 1 != 0;
            // Other threads learn of it by SIGSYS, and may still be knocked at.
            let kept = [signals::SIGSYS as usize, signals::SIGENGINE as usize];
            let needed = crate::world::has_several() && kept.contains(&sig);
            if sig == signals::SIGENGINE as usize && may_be_knocked_at && !needed && a.handler == signals::SIG_DFL {
                signals::overhear_knocks();
            } else if ours && !needed && sig != signals::SIGKILL as usize && sig != signals::SIGSTOP as usize {
                syscall!(nr::RT_SIGACTION, sig, a as *const _, 0, 8);
            }
        }
        let alt = t.altstack;
        let alt = if alt[2] == 0 { [0, SS_DISABLE, 0] } else { alt };
        syscall!(nr::SIGALTSTACK, alt.as_ptr(), 0);
        // OWNED signals that the program wants blocked are now blocked for real.
        if gs::are_own() {
            // Its handlers would find the engine's base: see `last_frame`.
            signals::block_all();
        } else {
            let mask = t.mask;
            syscall!(nr::RT_SIGPROCMASK, 2, &raw const mask, 0, 8);
        }
    }
}

/// A thread with a base of its own leaves the engine for good, all signals blocked: the frame of the kernel's, on its own stack, by
/// which it gets its registers and its mask at once. 0 if there is no room for it.
pub unsafe extern "C" fn last_frame(t: &mut Thread) -> u64 {
    let (regs, mask) = (t.regs, t.mask);
    let signal = Signal { info: &[0; 16], action: &SignalAction::default(), fault: [0; 3] };
    let built = frame::build(t, &regs, Vector::Saved, mask, &signal);
    // The frame begins with the address that a handler would return to.
    built.map_or(0, |handler| handler.rsp + 8)
}

/// How many are about to knock at threads that they have found in the engine's hands.
static KNOCKING: AtomicU32 = AtomicU32::new(0);

/// The thread's calls are the kernel's from here on, and no knock may end one: whoever has found it here before has knocked when this returns,
/// and what has come by then goes. In a handler, so that it cannot come earlier.
fn is_out(t: &mut Thread) {
    let (knocks, now, pause) = (signals::bit(signals::SIGENGINE), [0u64; 2], [0u64, 50_000]);
    // SAFETY: the word is the thread's own; the signal's number is the engine's, all signals are blocked, and the calls only read what they
    // are given.
    unsafe {
        (&raw mut t.native).write_volatile(1);
        fence(SeqCst);
        while KNOCKING.load(SeqCst) != 0 {
            syscall!(nr::NANOSLEEP, pause.as_ptr(), 0);
        }
        while !err::is(syscall!(nr::RT_SIGTIMEDWAIT, &raw const knocks, 0, now.as_ptr(), 8)) {}
    }
}

/// A thread that still has dispatch on meets it after protection was suspended: its calls are native from here on.
pub fn leave_thread(t: &mut Thread, uc: &mut Ucontext) {
    // SAFETY: turns dispatch off for the running thread.
    unsafe { syscall!(nr::PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) };
    is_out(t);
    uc.regs.rip -= 2;
    settle_frame(t, uc);
}

/// Protection has ended in a handler that found the program in its own code, in the frame to which the handler returns.
pub fn leave_frame(t: &mut Thread, uc: &mut Ucontext) {
    // It may have been in code of the engine's that stood for its own.
    uc.regs.rip = t.regs.rip;
    settle_frame(t, uc);
}

/// The same for one that is in the program's code when it is knocked at.
pub fn leave_by_knock(t: &mut Thread, uc: &mut Ucontext) {
    // SAFETY: as above.
    unsafe { syscall!(nr::PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) };
    is_out(t);
    settle_frame(t, uc);
}

fn settle_frame(t: &Thread, uc: &mut Ucontext) {
    // The kernel takes both from here when the handler returns.
    uc.stack = if t.altstack[2] == 0 { [0, SS_DISABLE, 0] } else { t.altstack };
    uc.sigmask = t.mask;
}

/// Waits until no other thread is in the engine's hands any more, and gives the lock back for that. From then on
/// the kernel may be told to filter their calls.
pub fn await_others(t: &mut Thread) {
    /// Of a millisecond each.
    const TRIES: u32 = 5000;
    if !world::has_several() {
        return;
    }
    if t.has_lock {
        world::unlock(t);
    }
    for _ in 0..TRIES {
        let mut left = 0;
        KNOCKING.fetch_add(1, SeqCst);
        world::each(|place| {
            // SAFETY: a thread writes its own word; its id does not change.
            let (native, tid) =
                unsafe { ((&raw const thread::at(place).native).read_volatile(), thread::at(place).real_tid) };
            if place != t.place && native == 0 {
                left += 1;
                world::knock(tid);
            }
        });
        KNOCKING.fetch_sub(1, SeqCst);
        if left == 0 {
            return;
        }
        let pause = [0u64, 1_000_000];
        // SAFETY: the time lies on the stack for the length of the call.
        unsafe { syscall!(nr::NANOSLEEP, pause.as_ptr(), 0) };
    }
}

/// Suspends protection for good: the program runs on, unprotected, and the log says why.
pub fn suspend(why: Degradation) {
    degrade(why);
    end(event_kind::SUSPENDED, why as u64);
}

/// The same by a person's wish. What the engine holds is given back, but for the little memory that its own text and data take. False:
/// the program would notice, having numbers that are not the kernel's, input that it has read and is to read again, or a ring.
pub fn detach(t: &mut Thread) -> bool {
    // SAFETY: the thread is in the engine.
    let e = unsafe { engine() };
    if numbers::differ() || !e.inputs.is_empty() || program_rings::exist(e) {
        return false;
    }
    end(event_kind::DETACHED, 0);
    await_others(t);
    if world::has_several() && e.kernel.actions[signals::SIGENGINE as usize].handler == signals::SIG_DFL {
        // Nobody needs them any more, and a call that waits goes on.
        signals::overhear_knocks();
    }
    completions::give_up(e);
    e.store = None;
    // SAFETY: numbers and addresses are the engine's; from here on nothing looks there.
    unsafe {
        let first = e.fds.own;
        syscall!(nr::CLOSE_RANGE, first, first + ENGINE_FDS - 1, 0);
        syscall!(nr::MUNMAP, STORE_BASE, STORE_LEN);
        syscall!(nr::MADVISE, SCRATCH_BASE, SCRATCH_ROOM, MADV_DONTNEED);
    }
    true
}

const MADV_DONTNEED: u64 = 4;

/// Ends protection, and tells of it as `kind`.
fn end(kind: u32, why: u64) {
    replies::leave();
    // SAFETY: only looks whether there is a log.
    inputs::leave(unsafe { engine() });
    // SAFETY: the thread is in the engine.
    gathered::release(unsafe { engine() });
    let c = control();
    if c.state.swap(state::SUSPENDED, AcqRel) != state::SUSPENDED {
        event(kind, 0, 0, why, 0);
    }
    // SAFETY: the thread is in the engine.
    let t = unsafe { thread::current() };
    // Whoever is the kernel's from here on would be knocked at by them.
    // SAFETY: as above.
    stop_timers(unsafe { engine() });
    // The bytes of a site do not change in one stroke, and nobody may come by meanwhile: later the others are not to be stopped any more.
    // SAFETY: as above.
    world::while_stopped(t, || unsafe { crate::rewrite::leave_program(thread::current()) });
    if gs::are_own() && world::has_several() && WAY.swap(way::NATIVE, AcqRel) != way::NATIVE {
        // A handler of the program's may not meet them in the engine, where GS is the engine's. Until the last one is out, the first ones'
        // native calls are met by signals that the engine handles.
        // SAFETY: as above.
        signals::restart_as_wanted(unsafe { engine() });
        await_others(t);
    }
    // SAFETY: nothing of what was closed with delay can be wanted again; the thread is in the engine.
    unsafe {
        engine().fds.close_delayed();
        // Others may have set one meanwhile.
        stop_timers(engine());
    }
    // SAFETY: as above.
    shared_memory::give_back(unsafe { engine() });
    // A write to an armed page is met by the engine's handler, or not at all.
    let is_met = unsafe { engine() }.tracker.guards_kernel_writes();
    if is_met {
        world::while_stopped(t, || become_native(true));
    } else {
        become_native(true);
    }
}

/// Nobody is there any more for whom the engine's own timers knock.
fn stop_timers(e: &mut Engine) {
    periodic::stop(e);
    lag::stop(e);
    held::reset();
}
