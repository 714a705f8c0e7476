//! Making a child of the supervisor's, for the kernel, and one of the program's for the program.

use super::ready::{self, Ready};
use super::{are_kept, expect, ring, spawned, table};
use crate::call_filters;
use crate::calls::birth::{CloneArgs, Noted, CLONE_VFORK, CLONE_VM, SIGCHLD};
use crate::calls::{contexts, spawn};
use crate::commit::commit;
use crate::control::control;
use crate::dispatch::{native, Call, Outcome};
use crate::gathered;
use crate::own_faults;
use crate::program_rings;
use crate::queued::Queue;
use crate::regions;
use crate::replies;
use crate::restore;
use crate::signals;
use crate::state::{Engine, OwnFd};
use crate::sys::{err, futex_wait, nr, syscall};
use crate::thread::{inner_stack_top, Thread};
use crate::undo;
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::children::{news, state, Child};
use outlast_image::context::{pending_kind, ThreadContext};
use outlast_image::control::{other_state, Control};
use outlast_image::inject::{mode, option, InjectArgs};
use outlast_image::kernel::{KernelState, Notification, PosixTimer, ProgramRing, Undo};
use outlast_image::kernel::{NOTIFICATIONS, RINGS, TIMERS, UNDOS};
use outlast_image::layout::{session, CHILD_BASE, SESSION_BASE, SESSION_LEN, STORE_BASE, STORE_LEN};
use outlast_image::region::backing;

const CSIGNAL: u64 = 0xff;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// What a clone may want besides, and still be a plain fork.
const PLAIN: u64 = CSIGNAL | CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
/// How long a child may take until it has an anchor, before it is looked after. Nanoseconds.
const PATIENCE_NS: u64 = 2_000_000;

/// How often it is looked whether a predecessor's child can be recovered: for two seconds.
const LOOKS: u32 = 1000;

/// What a call that makes a child wants.
pub struct Newborn {
    flags: u64,
    stack: u64,
    /// Where the child itself wants its number.
    child_tid: u64,
}

impl Newborn {
    /// What such a call wants; none: its arguments cannot be read.
    fn of(call: &Call) -> Option<Self> {
        let a = call.args;
        Some(match call.nr {
            nr::FORK => Self { flags: SIGCHLD, stack: 0, child_tid: 0 },
            nr::VFORK => Self { flags: SIGCHLD | CLONE_VM | CLONE_VFORK, stack: 0, child_tid: 0 },
            nr::CLONE => Self { flags: a[0], stack: a[1], child_tid: a[3] },
            _ => {
                // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size, tls; more may follow.
                let c = user::read::<[u64; 8]>(a[0])?;
                let stack = if c[5] == 0 { 0 } else { c[5] + c[6] };
                Self { flags: c[0] | c[4] & CSIGNAL, stack, child_tid: c[2] }
            }
        })
    }

    /// A child of vfork gets memory of its own, too: hardly any tells its parent anything by what both have. One with a stack of its own is
    /// posix_spawn's, which does: whether execve has failed.
    fn is_plain(&self) -> bool {
        let may_be_copied = self.flags & CLONE_VM == 0 || self.flags & CLONE_VFORK != 0 && self.stack == 0;
        self.flags & !PLAIN == 0 && self.flags & CSIGNAL == SIGCHLD && may_be_copied
    }
}

/// Makes a child as one of the supervisor's. None: it is to be made as a child of this process's.
pub fn make(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    if !are_kept() {
        return None;
    }
    let newborn = Newborn::of(call)?;
    if !newborn.is_plain() || !may_have_protected_children(e) {
        return None;
    }
    let ready = ready::receive(e)?;
    // Nothing of an earlier attempt was made.
    table().iter().filter(|child| child.state.load(Acquire) == state::EXPECTED).for_each(forget);
    let child = expect(e, ready.member)?;
    gathered::release(e);
    undo::share_all(e);
    if commit(e, call.pending(pending_kind::SPAWN)) == 0 {
        forget(child);
        return None;
    }
    Some(Outcome::Return(bear(e, t, call, &newborn, child, ready)))
}

fn forget(child: &Child) {
    child.state.store(state::FREE, Release);
}

/// May a child of the program, as it is now, begin from a copy of its store?
fn may_have_protected_children(e: &mut Engine) -> bool {
    let has_none = !program_rings::exist(e) && !contexts::are_any() && !own_faults::any();
    let mut is_shared = false;
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        is_shared |= matches!(m.region.backing, backing::SHARED_ANONYMOUS | backing::SEGMENT);
    });
    has_none && !is_shared && !world::has_several() && !call_filters::exist() && !replies::are_owed()
}

/// Makes the child that the commit stands before, again should it die before it can be recovered.
fn bear(e: &mut Engine, t: &mut Thread, call: &Call, newborn: &Newborn, child: &Child, ready: Ready) -> i64 {
    let mut ready = ready;
    loop {
        let r = try_to_bear(e, newborn, child, &ready);
        let is_born = !err::is(r) && await_anchor(r);
        // SAFETY: the mapping was made for this birth.
        unsafe { syscall!(nr::MUNMAP, CHILD_BASE, SESSION_LEN) };
        if is_born {
            return born(e, t, call, child, r);
        }
        if err::is(r) {
            forget(child);
            return r;
        }
        // What it began with may be half of something.
        let Some(next) = ready::receive(e) else {
            forget(child);
            return err::EAGAIN;
        };
        ready = next;
        child.state.store(state::FREE, Release);
        child.birth.store(0, Release);
        child.news.store(0, Release);
        child.member.store(ready.member, Release);
        child.state.store(state::EXPECTED, Release);
    }
}

fn try_to_bear(e: &mut Engine, newborn: &Newborn, child: &Child, ready: &Ready) -> i64 {
    // SAFETY: the range is the engine's own, the descriptor a session's.
    let r = unsafe { syscall!(nr::MMAP, CHILD_BASE, SESSION_LEN, 3, 0x01 | 0x10, ready.session, 0) };
    if err::is(r) {
        return r;
    }
    if !copy_store(e, ready.store) {
        return err::ENOMEM;
    }
    prepare_session(e);
    let kept = newborn.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
    let flags = kept | CLONE_PARENT | CLONE_PARENT_SETTID;
    let word = child.birth.as_ptr() as u64;
    let clone = Call { nr: nr::CLONE, args: [flags, 0, word, newborn.child_tid, 0, 0] };
    let r = signals::blocked_in_child(|| native(&clone));
    if r == 0 {
        // SAFETY: this is the child, whose only thread is in the engine.
        unsafe { come_into_its_own(e, ready) };
    }
    r
}

/// The child's session, as its parent has it mapped until it can be recovered.
fn session_of_child() -> &'static Control {
    // SAFETY: mapped by the caller; all fields are atomics.
    unsafe { &*((CHILD_BASE + session::CONTROL) as *const Control) }
}

/// Writes what the child's engine is to find.
fn prepare_session(e: &Engine) {
    let args = InjectArgs {
        mode: mode::RESUME,
        session_fd: e.fds.own,
        options: e.args.options & !option::FAULT_LIST,
        generation: 0,
        pid: 0,
        ..e.args
    };
    // SAFETY: inside the mapping; nobody uses it yet.
    unsafe { ((CHILD_BASE + session::INJECT) as *mut InjectArgs).write_volatile(args) };
    let (own, c) = (control(), session_of_child());
    c.parent.store(e.kernel.pid as i32, Release);
    c.pgid.store(0, Release);
    c.degradations.store(own.degradations.load(Acquire), Release);
    c.commits.store(1, Release);
    c.other_state.store(other_state::CHILD, Release);
}

/// Copies what there is of the store's file. No commit is made meanwhile: the caller has the engine.
fn copy_store(e: &Engine, to: i32) -> bool {
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    const FALLOC_FL_KEEP_SIZE_PUNCH_HOLE: u64 = 3;
    let from = e.own_fd(OwnFd::Store);
    // SAFETY: the offsets of both files are the engine's own, and the store is mapped.
    unsafe {
        syscall!(nr::FALLOCATE, to, FALLOC_FL_KEEP_SIZE_PUNCH_HOLE, 0, STORE_LEN);
        let mut at = 0u64;
        loop {
            let start = syscall!(nr::LSEEK, from, at, SEEK_DATA);
            if err::is(start) {
                // There is no more.
                return at > 0;
            }
            let end = syscall!(nr::LSEEK, from, start, SEEK_HOLE);
            if err::is(end) {
                return false;
            }
            let mut done = start as u64;
            while done < end as u64 {
                let n = syscall!(nr::PWRITE64, to, STORE_BASE + done, end as u64 - done, done);
                if n <= 0 {
                    return false;
                }
                done += n as u64;
            }
            at = end as u64;
        }
    }
}

/// The child takes its session and store in place of its parent's, and goes on as one that is recovered.
unsafe fn come_into_its_own(e: &mut Engine, ready: &Ready) -> ! {
    const O_CLOEXEC: u64 = 0o2000000;
    syscall!(nr::DUP3, ready.session, e.own_fd(OwnFd::Session), O_CLOEXEC);
    syscall!(nr::DUP3, ready.store, e.own_fd(OwnFd::Store), O_CLOEXEC);
    syscall!(nr::CLOSE, ready.session);
    syscall!(nr::CLOSE, ready.store);
    // What looks after the parent's memory must not be told of the child's.
    for used in (OwnFd::FaultList as i32..OwnFd::Spare as i32).filter(|used| *used != OwnFd::Children as i32) {
        syscall!(nr::CLOSE, e.fds.own + used);
    }
    e.store = None;
    syscall!(nr::MUNMAP, CHILD_BASE, SESSION_LEN);
    let fixed_shared = 0x01 | 0x10;
    syscall!(nr::MMAP, SESSION_BASE, SESSION_LEN, 3, fixed_shared, e.own_fd(OwnFd::Session), 0);
    let me = syscall!(nr::GETPID) as i32;
    control().born_as.store(me, Release);
    crate::on_stack(inner_stack_top(), restore::born)
}

/// Waits until the child can be recovered. False: it has died before.
fn await_anchor(pid: i64) -> bool {
    let c = session_of_child();
    loop {
        let served = c.served.load(Acquire);
        if c.anchor_pid.load(Acquire) != 0 {
            return true;
        }
        futex_wait(&c.served, served, Some(PATIENCE_NS));
        if c.anchor_pid.load(Acquire) == 0 && is_over(pid) {
            return c.anchor_pid.load(Acquire) != 0;
        }
    }
}

/// Has the process ended? It may be there still, for the supervisor to reap.
fn is_over(pid: i64) -> bool {
    // SAFETY: asks only; the descriptor is closed at once.
    unsafe {
        let fd = syscall!(nr::PIDFD_OPEN, pid, 0);
        if err::is(fd) {
            return fd == -3;
        }
        let mut poll = fd as u32 as u64 | 1 << 32;
        let ended = syscall!(nr::POLL, &raw mut poll, 1, 0) == 1;
        syscall!(nr::CLOSE, fd);
        ended
    }
}

/// The parent has a child.
fn born(e: &mut Engine, t: &mut Thread, call: &Call, child: &Child, pid: i64) -> i64 {
    // It may have ended by now.
    let _ = child.state.compare_exchange(state::EXPECTED, state::ALIVE, AcqRel, Acquire);
    ring();
    let mut room = CloneArgs::default();
    if let Some(noted) = Noted::new(call, &mut room) {
        noted.tell(pid);
    }
    spawn::is_made(e, t, pid)
}

/// Has the child of a dead predecessor ended before it could be recovered? The supervisor says so, or that it can be.
fn is_stillborn(child: &Child) -> bool {
    let told = &control().children_news;
    for _ in 0..LOOKS {
        let seen = told.load(Acquire);
        let known = child.news.load(Acquire);
        if known & news::STILLBORN != 0 {
            return true;
        }
        if child.state.load(Acquire) == state::ENDED || known & news::RECOVERABLE != 0 {
            return false;
        }
        futex_wait(told, seen, Some(PATIENCE_NS));
    }
    false
}

/// The call that a dead predecessor was about to make. None: not one of these.
pub fn again(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    let child = spawned(e.store().seq())?;
    let pid = child.birth.load(Acquire);
    if pid <= 0 || is_stillborn(child) {
        forget(child);
        return None;
    }
    Some(Outcome::Return(born(e, t, call, child, pid as i64)))
}

/// The state of the parent, at the commit before the fork, becomes that of the child. The call that it was born by, unless it has gone on
/// since.
pub fn adjust(e: &mut Engine, context: &mut ThreadContext) -> Option<Call> {
    let me = control().born_as.load(Acquire) as u32;
    let k: &mut KernelState = &mut e.kernel;
    (k.pid, context.tid) = (me, me);
    (k.itimer, k.timers) = ([0; 2], [PosixTimer::NONE; TIMERS]);
    (k.notifications, k.semaphores, k.more_undos) = ([Notification::NONE; NOTIFICATIONS], [Undo::NONE; UNDOS], 0);
    k.rings = [ProgramRing::NONE; RINGS];
    (k.death_signal, k.subreaper, k.own_pidfds, k.owners, k.locking) = (0, 0, 0, 0, 0);
    e.queue = Queue::new();
    let pending = core::mem::take(&mut context.pending);
    let call = Call { nr: pending.nr as u64, args: pending.args };
    (pending.kind == pending_kind::SPAWN).then_some(call)
}

/// What the call that it was born by has a child begin with. Its memory is there, and writes are tracked.
pub fn begin_with(context: &mut ThreadContext, call: &Call) {
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
    e.kernel_dirty = true;
    crate::commit::commit_at_gate(e);
    control().other_state.store(other_state::NONE, Release);
}
