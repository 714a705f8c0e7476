//! One write to the group's memory: the instruction that trapped is made by itself, by the engine or by the processor, and then committed.

use super::header::header;
use super::{made, protect, undone, PROT_WRITE};
use crate::commit::commit_stopped;
use crate::control::phase;
use crate::frame::Ucontext;
use crate::handlers::{in_engine, is_write_fault, keep_context};
use crate::native;
use crate::signals::{signal_code, OWNED, SIGENGINE, SIGSEGV, SIGTRAP};
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::{standing, Thread};
use crate::world;
use outlast_image::context::PendingCall;
use outlast_image::event::phase as at;
use outlast_image::layout::PAGE;

/// The processor's trap flag: a trap after the next instruction.
const TRAP_FLAG: u64 = 1 << 8;
const TRAP_TRACE: i32 = 2;

/// What is to be as before after the step.
pub struct Step {
    is_on: bool,
    mask: u64,
    traps: bool,
    /// Somebody knocked meanwhile.
    was_knocked_at: bool,
}

impl Step {
    pub const NONE: Step = Step { is_on: false, mask: 0, traps: false, was_knocked_at: false };
}

/// Is a write being made? Who knocks then is put off.
pub fn is_amid(e: &mut Engine) -> bool {
    e.shared_memory.step.was_knocked_at |= e.shared_memory.step.is_on;
    e.shared_memory.step.is_on
}

/// A signal that the program's own instruction has caused. True: it was for this module.
///
/// # Safety
/// In the handler whose frame `uc` is.
pub unsafe fn answer(e: &mut Engine, t: &mut Thread, sig: i32, info: &[u64; 16], uc: &mut Ucontext) -> bool {
    let address = info[2];
    let is_write = sig == SIGSEGV && is_write_fault(info, uc);
    let range = if is_write { e.shared_memory.find(address) } else { None };
    let is_amid = in_engine(uc.regs.rip) || e.shared_memory.step.is_on;
    match range.filter(|range| range.prot & PROT_WRITE != 0) {
        Some(range) if range.undone.is_some() && !is_amid => {
            undone::answer(e, t, uc, address);
            true
        }
        Some(range) if range.undone.is_some() || in_engine(uc.regs.rip) => super::open_for_engine(t, address),
        Some(range) => begin(e, t, uc, address & !(PAGE - 1), range.prot),
        None if !e.shared_memory.step.is_on => false,
        None if sig == SIGTRAP && signal_code(info) == TRAP_TRACE => end(e, t, uc),
        None => {
            abandon(e, t, uc);
            false
        }
    }
}

/// Lets the instruction write to the page. False: it writes to more pages than any instruction does.
unsafe fn begin(e: &mut Engine, t: &mut Thread, uc: &mut Ucontext, page: u64, prot: u32) -> bool {
    if !e.shared_memory.step.is_on {
        if world::has_several() {
            // Nobody else of this process writes to the page while it is open.
            keep_context(t, uc);
            world::arrive(t, standing::AT_REST);
            world::lock(t);
            if native::is_everywhere() {
                depart(t);
                return true;
            }
            world::stop(t);
        }
        let seq = e.store().seq();
        header().lock(e, seq);
        keep_context(t, uc);
        if made::make(e, t) {
            uc.regs = t.regs;
            finish(e, t, uc);
            return true;
        }
        e.shared_memory.step =
            Step { is_on: true, mask: uc.sigmask, traps: uc.regs.eflags & TRAP_FLAG != 0, was_knocked_at: false };
        uc.regs.eflags |= TRAP_FLAG;
        // No handler comes in between.
        uc.sigmask |= !OWNED;
    }
    if !header().keep(page) {
        abandon(e, t, uc);
        return false;
    }
    protect(page, page + PAGE, prot);
    true
}

/// The instruction is done.
unsafe fn end(e: &mut Engine, t: &mut Thread, uc: &mut Ucontext) -> bool {
    close(e, uc);
    keep_context(t, uc);
    finish(e, t, uc);
    true
}

/// Commits the write that was made, and goes on behind it.
unsafe fn finish(e: &mut Engine, t: &mut Thread, uc: &mut Ucontext) {
    commit_stopped(e, t, PendingCall::default());
    world::resume();
    header().unlock();
    t.is_fresh = true;
    depart(t);
    if native::is_everywhere() {
        native::leave_frame(t, uc);
        return;
    }
    phase(at::PROGRAM);
    if core::mem::take(&mut e.shared_memory.step.was_knocked_at) {
        syscall!(nr::TGKILL, syscall!(nr::GETPID), t.real_tid, SIGENGINE);
    }
}

/// The instruction has failed of itself, and has written nothing.
unsafe fn abandon(e: &mut Engine, t: &mut Thread, uc: &mut Ucontext) {
    close(e, uc);
    header().unlock();
    world::resume();
    depart(t);
}

/// The thread goes on among the others, if there are any.
pub fn depart(t: &mut Thread) {
    if world::has_several() {
        if t.has_lock {
            world::unlock(t);
        }
        world::depart(t);
    }
}

unsafe fn close(e: &mut Engine, uc: &mut Ucontext) {
    let step = &mut e.shared_memory.step;
    step.is_on = false;
    (uc.sigmask, uc.regs.eflags) = (step.mask, uc.regs.eflags & !TRAP_FLAG | if step.traps { TRAP_FLAG } else { 0 });
    for page in header().pages() {
        if let Some(range) = e.shared_memory.find(page) {
            protect(page, page + PAGE, range.prot & !PROT_WRITE);
        }
    }
}

/// Nobody is in the middle of a write in a process that was just made.
pub fn reset(e: &mut Engine) {
    e.shared_memory.step = Step::NONE;
    undone::reset(e);
    super::CALLS.store(0, core::sync::atomic::Ordering::SeqCst);
}
