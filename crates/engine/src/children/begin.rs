//! A child of fork's begins: it goes on as one that is recovered, from the copy of its parent's store, in which it is the child.

use super::bare;
use super::newborn::Newborn;
use super::ready::Ready;
use crate::calls::birth::{CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID};
use crate::calls::memory;
use crate::control::control;
use crate::dispatch::Call;
use crate::kept_files::Told;
use crate::proc;
use crate::queued::Queue;
use crate::restore;
use crate::state::{Engine, OwnFd};
use crate::sys::{nr, syscall};
use crate::thread::{inner_stack_top, Thread};
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::context::{pending_kind, ThreadContext};
use outlast_image::control::other_state;
use outlast_image::inject::option;
use outlast_image::kernel::{KernelState, Notification, PosixTimer, ProcessorTimer, ProgramRing, Undo};
use outlast_image::kernel::{NOTIFICATIONS, RINGS, TIMERS, UNDOS};
use outlast_image::layout::{CHILD_BASE, SESSION_BASE, SESSION_LEN};

/// The child takes its session and store in place of its parent's, and goes on as one that is recovered.
pub unsafe fn come_into_its_own(e: &mut Engine, ready: &Ready) -> ! {
    const O_CLOEXEC: u64 = 0o2000000;
    syscall!(nr::DUP3, ready.session, e.own_fd(OwnFd::Session), O_CLOEXEC);
    syscall!(nr::DUP3, ready.store, e.own_fd(OwnFd::Store), O_CLOEXEC);
    syscall!(nr::CLOSE, ready.session);
    syscall!(nr::CLOSE, ready.store);
    // What looks after the parent's memory must not be told of the child's.
    let kept = [OwnFd::Children as i32, OwnFd::Group as i32];
    let is_kept = |used| kept.contains(&used) || used == OwnFd::Proc as i32 && proc::is_own();
    for used in (OwnFd::FaultList as i32..OwnFd::Spare as i32).filter(|&used| !is_kept(used)) {
        syscall!(nr::CLOSE, e.fds.own + used);
    }
    e.store = None;
    // Its anchor has heard of none.
    e.told_files = Told::NOTHING;
    syscall!(nr::MUNMAP, CHILD_BASE, SESSION_LEN);
    let fixed_shared = 0x01 | 0x10;
    syscall!(nr::MMAP, SESSION_BASE, SESSION_LEN, 3, fixed_shared, e.own_fd(OwnFd::Session), 0);
    let me = syscall!(nr::GETPID) as i32;
    control().born_as.store(me, Release);
    crate::on_stack(inner_stack_top(), restore::born)
}

/// The state of the parent, at the commit before the fork, becomes that of the child. The call that it was born by, unless it has gone on
/// since.
pub fn adjust(e: &mut Engine, context: &mut ThreadContext) -> Option<Call> {
    let me = control().born_as.load(Acquire) as u32;
    let k: &mut KernelState = &mut e.kernel;
    (k.pid, context.tid) = (me, me);
    (k.itimer, k.timers) = ([0; 2], [PosixTimer::NONE; TIMERS]);
    k.processor_timers = [ProcessorTimer::NONE; 2];
    (k.notifications, k.semaphores, k.more_undos) = ([Notification::NONE; NOTIFICATIONS], [Undo::NONE; UNDOS], 0);
    k.rings = [ProgramRing::NONE; RINGS];
    (k.death_signal, k.subreaper, k.own_pidfds, k.owners, k.locking) = (0, 0, 0, 0, 0);
    e.queue = Queue::new();
    let pending = core::mem::take(&mut context.pending);
    let call = Call { nr: pending.nr as u64, args: pending.args };
    (pending.kind == pending_kind::SPAWN).then_some(call)
}

/// Is the memory of a child that was just born, a copy of its parent's, what its store holds? Nothing has been written to it since. But not
/// where other threads have run on meanwhile, where it lies over its parent's store, or where it lacks what the kernel did not copy.
pub fn has_its_memory(e: &Engine) -> bool {
    !e.sheds_threads && e.lazy_count == 0 && e.advice.left_behind().is_none()
}

/// What the call that it was born by has a child begin with. Its memory is there, and writes are tracked.
pub fn begin_with(e: &mut Engine, t: &mut Thread, context: &mut ThreadContext, call: &Call) {
    while let Some((start, end)) = e.advice.left_behind() {
        memory::serve(e, t, &Call { nr: nr::MUNMAP, args: [start, end - start, 0, 0, 0, 0] });
        e.advice.unmapped(start, end);
    }
    e.advice.each_wiped(|(start, end)| {
        (start..end).step_by(4096).all(|page| user::write(page, &[0u64; 512]));
    });
    context.regs.rax = 0;
    (context.robust_list, context.tid_address) = ([0; 2], 0);
    let Some(newborn) = Newborn::of(call) else { return };
    if newborn.stack != 0 {
        context.regs.rsp = newborn.stack;
    }
    if newborn.flags & CLONE_CHILD_CLEARTID != 0 {
        context.tid_address = newborn.child_tid;
    }
    if newborn.flags & CLONE_CHILD_SETTID != 0 {
        user::write(newborn.child_tid, &context.tid);
    }
}

/// The child is itself from this commit on.
pub fn is_itself(e: &mut Engine) {
    // Of a child no older generations are kept.
    e.args.options &= !option::HISTORY;
    e.kernel_dirty = true;
    crate::commit::commit_at_gate(e);
    control().other_state.store(other_state::NONE, Release);
    bare::is_stored();
}
