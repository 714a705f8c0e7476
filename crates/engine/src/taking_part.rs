//! Programs that take part in their own protection, through a prctl that only the engine knows.
//!
//! The functions of such a program run as handlers of signals do: on the stack of the thread that is to commit or was
//! recovered, above a frame with the context that was interrupted, in which it goes on once the function has returned. What
//! they do is the program's own doing: calls pass the gate, a death in one is an ordinary death, and a commit in the middle of
//! one is restored in its middle. So the engine keeps no more than which function runs, in which thread.

use crate::commit::commit_at_gate;
use crate::control::control;
use crate::dispatch::{Call, Outcome};
use crate::frame::{self, Signal, Vector};
use crate::mutant::without;
use crate::requests;
use crate::state::{object, Engine};
use crate::sys::{err, nr};
use crate::thread::{pending_bit, Thread};
use core::sync::atomic::Ordering::*;
use outlast_image::kernel::SignalAction;
use outlast_image::mutant::Mutant;
use outlast_image::sections::REGISTRIES;
use outlast_image::taking_part::{ask, OPTION};

/// A function of the program's; none if `entry` is 0.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Function {
    entry: u64,
    argument: u64,
    /// Where it returns to.
    exit: u64,
    /// Id of the thread that runs it; 0 for none.
    thread: u64,
}

/// What the engine knows of a program that takes part. An object of the store.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct TakingPart {
    before: Function,
    after: Function,
    /// The program itself waits for the commit after the function before it.
    is_asked: u64,
    /// A recovery that the function after one has yet to be told of; 0 for none.
    recovery: u64,
    /// Its registries of code sections; 0 for none. The engine never looks inside.
    sections: [u64; REGISTRIES],
    dirty: u64,
}

impl TakingPart {
    pub const NOTHING: Self = {
        let none = Function { entry: 0, argument: 0, exit: 0, thread: 0 };
        Self { before: none, after: none, is_asked: 0, recovery: 0, sections: [0; REGISTRIES], dirty: 0 }
    };

    /// Is the function before a commit to be called? Not while one of the functions runs: protection does not wait for it.
    fn comes_before(&self) -> bool {
        self.before.entry != 0 && self.before.thread == 0 && self.after.thread == 0
    }
}

/// Is the call one to the engine?
pub fn is_one(call: &Call) -> bool {
    // The kernel takes the low half only.
    call.nr == nr::PRCTL && call.args[0] as u32 as u64 == OPTION
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    let [_, what, entry, argument, exit, _] = call.args;
    let c = control();
    Outcome::Return(match what {
        ask::COMMITS => c.commits.load(Relaxed) as i64,
        ask::RECOVERIES => c.restored.load(Relaxed) as i64,
        ask::DEGRADATIONS => c.degradations.load(Relaxed) as i64,
        ask::LAST => e.store().seq() as i64,
        ask::COMMIT => return commit_asked(e, t),
        ask::BEFORE_COMMIT | ask::AFTER_RECOVERY => {
            let function = Function { entry, argument, exit, thread: 0 };
            match what {
                ask::BEFORE_COMMIT => (e.part.before, e.part.is_asked) = (function, 0),
                _ => (e.part.after, e.part.recovery) = (function, 0),
            }
            e.part.dirty = 1;
            0
        }
        ask::SECTIONS => register(e, entry),
        ask::RETURN => return returned(e, t, call),
        _ => err::EINVAL,
    })
}

/// Another registry of code sections. More than there is room for are not looked at.
fn register(e: &mut Engine, registry: u64) -> i64 {
    if !e.part.sections.contains(&registry) {
        let Some(place) = e.part.sections.iter_mut().find(|place| **place == 0) else { return err::ENOMEM };
        (*place, e.part.dirty) = (registry, 1);
        show_sections(e);
    }
    0
}

/// Says where they are to who looks on.
fn show_sections(e: &Engine) {
    for (shown, address) in control().threads.sections.iter().zip(e.part.sections) {
        shown.store(address, Release);
    }
}

/// The program wants a commit; it goes on once that is made.
fn commit_asked(e: &mut Engine, t: &mut Thread) -> Outcome {
    // Should protection end before the commit is made.
    t.regs.rax = err::EINVAL as u64;
    if !enter_before(e, t) {
        commit_numbered(e, t);
        return Outcome::Registers;
    }
    e.part.is_asked = 1;
    Outcome::Registers
}

/// Commits, and gives the program the number: also the one that is restored from there.
fn commit_numbered(e: &mut Engine, t: &mut Thread) {
    t.regs.rax = e.store().seq() + 1;
    if commit_at_gate(e) == 0 {
        t.regs.rax = err::EINVAL as u64;
    }
}

/// Has the thread call the function before a commit, if there is one; the commit is made when that has returned.
pub fn enter_before(e: &mut Engine, t: &mut Thread) -> bool {
    let function = e.part.before;
    if !e.part.comes_before() || !enter(t, &function, 0) {
        return false;
    }
    (e.part.before.thread, e.part.dirty) = (t.tid as u64, 1);
    true
}

/// The program was recovered: this thread calls the function after that before it does anything of its own. A call that it
/// was in and that waits is interrupted, and made again afterwards.
pub fn recovered(e: &mut Engine, t: &mut Thread, recovery: u64) {
    if e.part.after.entry != 0 && !without(Mutant::AfterRecovery) {
        (e.part.recovery, e.part.dirty) = (recovery, 1);
        t.learns = true;
        if t.place == 0 {
            expect(t);
        }
    }
}

/// The thread, which is made by now, is about to go on after the recovery.
pub fn expect(t: &mut Thread) {
    if core::mem::take(&mut t.learns) {
        t.pending.fetch_or(pending_bit::RECOVERED, AcqRel);
    }
}

/// On the way out of the gate after [`recovered`].
pub fn tell_of_recovery(e: &mut Engine, t: &mut Thread) {
    // A function that runs is not interrupted by itself: it is called again when it has returned.
    if e.part.recovery != 0 && e.part.after.thread == 0 {
        let function = e.part.after;
        if function.entry != 0 && enter(t, &function, e.part.recovery) {
            e.part.after.thread = t.tid as u64;
        }
        (e.part.recovery, e.part.dirty) = (0, 1);
    }
}

/// Makes the thread's next context the function's first. False: its stack has no room.
fn enter(t: &mut Thread, function: &Function, second: u64) -> bool {
    // No signal has this number, by which whoever walks the stack can tell the frame.
    let info = [0; 16];
    let action = SignalAction { handler: function.entry, flags: 0, restorer: function.exit, mask: 0 };
    let signal = Signal { info: &info, action: &action, fault: [0; 3] };
    let (regs, mask) = (t.regs, t.mask);
    let Some(first) = frame::build(t, &regs, Vector::Saved, mask, &signal) else { return false };
    t.regs = first;
    (t.regs.rdi, t.regs.rsi, t.regs.rdx) = (function.argument, second, 0);
    frame::reset_vector(&mut t.page.xsave.0);
    (t.whole, t.interrupted) = (1, 0);
    t.countdown.forget();
    true
}

/// Back to where the thread was. Functions that run in the same thread return in the reverse order of their calls.
fn returned(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    let outcome = crate::calls::signals::serve(e, t, &Call { nr: nr::RT_SIGRETURN, ..*call });
    if t.native != 0 {
        return outcome;
    }
    let thread = t.tid as u64;
    if e.part.after.thread == thread {
        (e.part.after.thread, e.part.dirty) = (0, 1);
        tell_of_recovery(e, t);
    } else if e.part.before.thread == thread {
        (e.part.before.thread, e.part.dirty) = (0, 1);
        if core::mem::take(&mut e.part.is_asked) != 0 {
            commit_numbered(e, t);
        } else {
            requests::commit_now(e);
        }
    }
    outcome
}

/// Puts what has changed into the commit that is being built.
pub fn save(e: &mut Engine) {
    if core::mem::take(&mut e.part.dirty) != 0 {
        let part = e.part;
        e.store().put(object::TAKING_PART, 0, bytemuck::bytes_of(&part));
    }
}

/// Reads what the commit has.
pub fn load(e: &mut Engine) {
    let mut part = TakingPart::NOTHING;
    let bytes = bytemuck::bytes_of_mut(&mut part);
    let is_whole = e.store().object(object::TAKING_PART, 0, bytes) == Some(bytes.len());
    e.part = if is_whole { part } else { TakingPart::NOTHING };
    show_sections(e);
}
