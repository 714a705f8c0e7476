//! From a call at the gate to the module that serves its class.

pub mod straight;

use straight::GROUPS;
pub use straight::{
    answer_ids, slow_down_all, slow_down_filtered, slow_down_tracked, slow_down_waits, slow_down_writing,
    BY_DESCRIPTOR, CLASS, TIMED,
};

use crate::call_filters;
use crate::calls;
use crate::children;
use crate::commit::{commit, commit_at_gate};
use crate::control::{control, degrade, phase};
use crate::countdown;
use crate::futexes;
use crate::gathered;
use crate::group::{self, Way};
use crate::held;
use crate::history;
use crate::inputs::readiness;
use crate::kernel_writes;
use crate::lag;
use crate::medium;
use crate::numbers;
use crate::own_faults;
use crate::own_files;
use crate::perturb;
use crate::program_rings;
use crate::shared_memory;
use crate::state::{engine, Engine};
use crate::sys::{err, nr};
use crate::taking_part;
use crate::thread::{self, standing, Thread};
use crate::unnamed;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_calls::{interrupted, Class, Interrupted};
use outlast_image::context::{pending_kind, PendingCall, Registers};
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::kernel::one_shot;

/// A call with its arguments.
#[derive(Clone, Copy)]
pub struct Call {
    pub nr: u64,
    pub args: [u64; 6],
}

impl Call {
    /// The call with which the thread came to the gate.
    pub fn at(t: &Thread) -> Call {
        Call::made(t.call, &t.regs)
    }

    /// The call that is made with these registers.
    pub fn made(nr: u64, r: &Registers) -> Call {
        Call { nr, args: [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] }
    }

    /// The call as the commit will remember it.
    pub fn pending(&self, kind: u32) -> PendingCall {
        PendingCall { kind, nr: self.nr as u32, args: self.args, offset: 0, size: 0 }
    }

    pub fn fd(&self) -> i32 {
        self.args[0] as i32
    }

    /// May it wait? If not, a signal that came before it is none of its business.
    pub fn waits(&self) -> bool {
        interrupted(self.nr, &self.args) != Interrupted::Never
    }
}

/// What becomes of the program's registers.
pub enum Outcome {
    /// The call's result.
    Return(i64),
    /// The registers were set already.
    Registers,
}

/// Serves the call whose number is in `t.call` and whose arguments are in the saved registers.
///
/// # Safety
/// Called by the gate, on the engine's stack.
pub unsafe extern "C" fn dispatch(t: &mut Thread) {
    perturb::delay();
    t.countdown.arrive(&t.regs);
    if !world::has_several() {
        dispatch_alone(t);
        if world::has_several() {
            // The call has made the second thread.
            call_made(t);
            world::unlock(t);
            world::depart(t);
        }
        return;
    }
    let call = Call::at(t);
    if own_faults::kernel::is_served() {
        world::arrive(t, standing::IN_CALL);
        own_faults::kernel::touch_arguments(&call);
    } else {
        group::offer(t, &call);
        world::arrive(t, standing::IN_CALL);
    }
    // A call that has trapped is served with the lock: its site may be rewritten.
    let needs_no_lock =
        t.by_trap == 0 && waits_by_itself(&call) && engine().inputs.is_empty() && !call_filters::asks(call.nr);
    let needs_no_lock = needs_no_lock && !gathered::is_any() && !program_rings::concern(engine(), &call);
    if needs_no_lock && !names_own(engine(), &call) {
        let r = interruptible(t, &call);
        t.regs.rax = r as u64;
        call_made(t);
    } else {
        match group::lock_or_join(t) {
            Way::Alone if crate::native::is_everywhere() => leave_to_kernel(t),
            Way::Alone => dispatch_alone(t),
            Way::GoOn => group::go_on(engine(), t),
            Way::Made => {}
        }
        call_made(t);
        if t.has_lock {
            world::unlock(t);
        }
    }
    // A call that was interrupted is settled on the way out: until then the thread stands before it.
    if t.interrupted == 0 || t.pending.load(Acquire) == 0 {
        world::depart(t);
    }
}

/// Protection has ended while the thread waited for the lock: whoever ended it may be giving back what the engine holds, and is not to meet
/// a call that begins now. The thread makes it again, and meets dispatch outside.
fn leave_to_kernel(t: &mut Thread) {
    t.regs.rip -= 2;
    t.regs.rax = t.call;
}

/// From now on the thread goes on behind its call, unless that was interrupted.
fn call_made(t: &mut Thread) {
    t.is_fresh = true;
    if t.interrupted == 0 {
        t.standing.store(standing::AT_REST, Release);
    }
}

/// Can the call be made without the engine's lock? It waits, concerns nobody else, and the engine notes nothing of it.
fn waits_by_itself(call: &Call) -> bool {
    // SAFETY: only looks which tracker there is.
    if unsafe { engine() }.tracker.guards_kernel_writes() && kernel_writes::concern(call) {
        return false;
    }
    match call.nr {
        nr::FUTEX => futexes::is_private(call) && !futexes::is_written(call),
        nr::POLL | nr::PPOLL | nr::SELECT | nr::PSELECT6 | nr::NANOSLEEP | nr::CLOCK_NANOSLEEP => true,
        // SAFETY: only looks what the program uses.
        n if calls::epoll::waits(n) => unsafe { engine().kernel.one_shot == one_shot::NONE },
        _ => false,
    }
}

unsafe fn dispatch_alone(t: &mut Thread) {
    phase(at::GATE);
    let e = engine();
    count_calls(t);
    if t.by_trap != 0 {
        t.by_trap = 0;
        control().trapped_calls.fetch_add(1, Relaxed);
        crate::rewrite::trapped(e, t);
    }
    let call = Call::at(t);
    lag::before(e, &call);
    let outcome = gathered::before(e, t, &call).unwrap_or_else(|| serve(e, t, call));
    let outcome = calls::own_faults::served(e, t, &call, outcome);
    if let Outcome::Return(result) = outcome {
        medium::note(e, &call, result);
        t.regs.rax = result as u64;
    }
    gathered::after(e, &call);
    lag::after(e);
    crate::pinned::call_ended(t);
    if t.native == 0 {
        // A child shares the control page and must leave it alone.
        phase(at::PROGRAM);
    }
}

/// Adds what the thread has called since to the control page, which only the holder of the lock does.
fn count_calls(t: &mut Thread) {
    world::add(&control().gate_calls, t.calls - t.counted);
    t.counted = t.calls;
}

fn class_of(nr: u64) -> Class {
    outlast_calls::row(nr).map_or(Class::Unknown, |r| r.class)
}

/// Is an argument a descriptor of the engine's, which is not open as far as the program is concerned?
fn names_own(e: &Engine, call: &Call) -> bool {
    // Onto one it may be copied: the engine makes way.
    let target = if matches!(call.nr, nr::DUP2 | nr::DUP3) { 1 << 1 } else { 0 };
    let descriptors = outlast_calls::row(call.nr).map_or(0, |r| r.descriptors()) & !target;
    (0..6).any(|i| descriptors >> i & 1 != 0 && e.fds.is_own(call.args[i] as i32))
}

fn serve(e: &mut Engine, t: &mut Thread, call: Call) -> Outcome {
    if shared_memory::is_on() && calls::contexts::submits(&call) {
        // The kernel writes to the program's memory at any time.
        shared_memory::undone::release_all(e);
    }
    if !e.own_files.any() && !own_files::makes(&call) {
        return serve_any(e, t, call);
    }
    let change = own_files::before(e, &call);
    let outcome = serve_any(e, t, call);
    if let Outcome::Return(r) = outcome {
        own_files::after(e, &call, r, change);
    }
    outcome
}

fn serve_any(e: &mut Engine, t: &mut Thread, call: Call) -> Outcome {
    use Outcome::Return;
    if call_filters::asks(call.nr) {
        if let Some(refused) = calls::filters::refuse(t, &call) {
            return refused;
        }
    }
    if calls::own_faults::is_unkept(&call) {
        return Return(calls::own_faults::unprotected(e, t, &call));
    }
    let class = class_of(call.nr);
    if class != Class::Map && names_own(e, &call) {
        return Return(err::EBADF);
    }
    if matches!(class, Class::Exec | Class::Spawn | Class::Exit) {
        held::release(t);
    }
    if let Some(failure) = e.unsynced.take_failure(&call) {
        return Return(failure);
    }
    if let Some(waited) = program_rings::wait(e, t, &call) {
        return waited;
    }
    match class {
        Class::Pure if call.nr == nr::GETPID => Return(e.kernel.pid as i64),
        Class::Pure if call.nr == nr::GETPPID => Return(children::parent().unwrap_or_else(|| native(&call))),
        Class::Pure if children::usage::asks(&call) => Return(children::usage::ask(&call)),
        Class::Thread | Class::Redo if calls::limits::asks(&call) => Return(calls::limits::ask(e, &call)),
        Class::Pure if call.nr == nr::GETTID => Return(t.tid as i64),
        Class::Pure if GROUPS.contains(&call.nr) => Return(calls::groups::ask(e, &call)),
        Class::Pure | Class::Object if calls::posix_timers::is_one(call.nr) => {
            Return(calls::posix_timers::serve(e, t, &call))
        }
        Class::Pure if calls::inheriting::is_one(&call) => Return(calls::inheriting::serve(t, &call)),
        Class::Pure => match readiness::answer(e, &call) {
            Some(r) => Return(calls::epoll::waited(e, &call, r)),
            None if calls::epoll::waits(call.nr) => Return(calls::epoll::wait(e, t, &call)),
            None => Return(interruptible(t, &call)),
        },
        Class::Map => Return(calls::memory::serve(e, t, &call)),
        Class::Open => {
            if calls::groups::may_take_terminal(e, &call) {
                calls::groups::make_real(e);
            }
            Return(calls::descriptors::open(e, t, &call))
        }
        Class::Close => match program_rings::before_close(e, t, &call) {
            Some(closes_files) => closes_files,
            None => Return(calls::descriptors::close(e, t, &call)),
        },
        Class::Offset => Return(calls::descriptors::offset(e, t, &call)),
        Class::Redo | Class::Once if calls::directory::moves(&call) => Return(calls::directory::change(e, t, &call)),
        Class::Redo if call.nr == nr::UMASK => Return(calls::directory::set_mask(e, &call)),
        Class::Input if calls::credentials::asks(&call) => Return(calls::credentials::ask(t, &call)),
        Class::Input | Class::Output | Class::Once | Class::Wait if calls::unseen::chosen(e) => {
            history::lose(e);
            Return(calls::unseen::serve(e, t, &call))
        }
        Class::Input => Return(calls::input::serve(e, t, &call)),
        Class::Output => match calls::splice::by_copying(e, &call) {
            Some(copy) => serve(e, t, copy),
            None => Return(calls::output::serve(e, t, &call)),
        },
        Class::Redo if call.nr == nr::FCNTL => Return(calls::descriptors::fcntl(e, t, &call)),
        Class::Redo | Class::Once if calls::groups::sets(&call) => Return(calls::groups::set(e, t, &call)),
        Class::Redo if call.nr == nr::FLOCK => Return(calls::descriptors::lock(e, t, &call)),
        Class::Redo if call.nr == nr::IOCTL => Return(calls::devices::serve(e, t, &call)),
        Class::Redo if calls::inherited::by_redo(&call) => Return(calls::inherited::change(e, t, &call)),
        Class::Redo if calls::unseen::chosen(e) => Return(calls::unseen::serve(e, t, &call)),
        Class::Redo if calls::names::is_refused_again(&call) => Return(calls::names::serve(e, t, &call)),
        Class::Redo => Return(redo(e, t, &call)),
        Class::Once => Return(calls::names::serve(e, t, &call)),
        Class::Signal => calls::signals::serve(e, t, &call),
        Class::Thread if taking_part::is_one(&call) => taking_part::serve(e, t, &call),
        Class::Thread if calls::inherited::by_thread(&call) => Return(calls::inherited::change(e, t, &call)),
        Class::Thread if calls::gs::sets(&call) => calls::gs::set(e, t, &call),
        Class::Thread => calls::threads::serve(e, t, &call),
        Class::Spawn => calls::spawn::serve(e, t, &call),
        Class::Exec => calls::exec::serve(e, t, &call),
        Class::Wait => Return(children::wait(e, t, &call)),
        Class::Exit => calls::exit::serve(e, t, &call),
        _ if matches!(call.nr, nr::SETITIMER | nr::ALARM) => Return(calls::timers::set(e, &call)),
        Class::Object if call.nr == calls::epoll::EPOLL_CTL => Return(calls::epoll::control(e, t, &call)),
        Class::Object if calls::contexts::is_one(call.nr) => Return(calls::contexts::serve(e, t, &call)),
        Class::Object if call.nr == calls::notifications::MQ_NOTIFY => Return(calls::notifications::serve(e, t, &call)),
        Class::Object if call.nr == calls::own_faults::USERFAULTFD => Return(calls::own_faults::serve(e, t, &call)),
        Class::Object if calls::queues::is_one(call.nr) => Return(calls::queues::serve(e, t, &call)),
        Class::Object if calls::segments::is_one(call.nr) => Return(calls::segments::serve(e, t, &call)),
        Class::Object if matches!(call.nr, nr::INOTIFY_ADD_WATCH | nr::INOTIFY_RM_WATCH) => {
            Return(calls::watches::serve(e, t, &call))
        }
        // Rules are the descriptor's, which the anchor keeps.
        Class::Object if matches!(call.nr, nr::LANDLOCK_CREATE_RULESET | nr::LANDLOCK_ADD_RULE) => {
            Return(visible(e, t, &call))
        }
        Class::Object if program_rings::is_one(call.nr) => program_rings::serve(e, t, &call),
        Class::Object => {
            degrade(Degradation::KernelObject);
            Return(visible(e, t, &call))
        }
        Class::Security => Return(calls::inherited::change(e, t, &call)),
        Class::Absent => Return(native(&call)),
        Class::Unknown => {
            control().unknown_calls.fetch_add(1, Relaxed);
            degrade(Degradation::UnknownCall);
            Return(visible(e, t, &call))
        }
    }
}

/// Issues the call as it is. It must not wait.
pub fn native(call: &Call) -> i64 {
    let a = &numbers::arguments(call);
    // SAFETY: the program asked for it; the kernel checks its pointers.
    kernel_writes::around(call, || unsafe { crate::sys::call6(call.nr, a[0], a[1], a[2], a[3], a[4], a[5]) })
}

extern "C" {
    fn call_interruptible(args: *const [u64; 7]) -> i64;
}

/// Issues a call that may wait: EINTR if a signal or a request came before or during it.
pub fn wait_for(call: &Call) -> i64 {
    // SAFETY: the calling thread is at the gate.
    let t = unsafe { thread::current() };
    loop {
        let made = countdown::begin(t, call);
        let a = &made.args;
        t.unbegun = 0;
        // SAFETY: as `native`.
        let r = unsafe { call_interruptible(&[countdown::number(t, call), a[0], a[1], a[2], a[3], a[4], a[5]]) };
        countdown::end(t, call, &made);
        if r != err::EINTR || t.pending.load(Acquire) != 0 || !may_end_for_nothing(call) {
            return r;
        }
    }
}

/// Does the kernel end the call with EINTR, rather than to go on with it, when another thread has taken the signal that woke this one? The
/// engine's own knocks do that to a process whose threads are none the wiser otherwise.
fn may_end_for_nothing(call: &Call) -> bool {
    match interrupted(call.nr, &call.args) {
        Interrupted::Eintr => true,
        // Where it has a time-out. A file system may have reasons of its own to say so.
        Interrupted::RestartUnlessTimeout => matches!(
            call.nr,
            nr::CONNECT | nr::ACCEPT | nr::ACCEPT4 | nr::SENDTO | nr::SENDMSG | nr::RECVFROM | nr::RECVMSG
        ),
        _ => false,
    }
}

/// Issues a call, once. If it may wait: EINTR if a signal or a request came before or during it. One that never waits
/// must not answer so.
pub fn issue(call: &Call) -> i64 {
    if !call.waits() {
        return native(call);
    }
    // SAFETY: the calling thread is at the gate.
    held::release(unsafe { thread::current() });
    kernel_writes::around(call, || wait_for(call))
}

/// Issues a call: if it may wait, a signal or a request that arrives before or during it ends it with EINTR.
pub fn interruptible(t: &mut Thread, call: &Call) -> i64 {
    if call.waits() && (t.has_lock || !world::has_several()) {
        // SAFETY: the calling thread is at the gate, and nobody else uses the engine.
        lag::before_waiting(unsafe { engine() });
    }
    // A call that never waits is over before anybody else may commit.
    let r = if world::has_several() && call.waits() {
        crate::waiting::issue(t, call)
    } else if world::has_several() && !t.has_lock {
        // The phase is that of whoever has the lock.
        issue(call)
    } else {
        phase(at::BLOCKED);
        let r = issue(call);
        phase(at::GATE);
        r
    };
    // Whether it waited or was about to is the same.
    t.unbegun = 0;
    if r == err::EINTR {
        // A request is served on the way out, where a commit finds the program before this call.
        t.interrupted = 1;
    }
    r
}

/// A visible call that may be issued again: commit, then the call.
pub fn redo(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    // Should others commit meanwhile: it may have been made.
    t.pending_call = call.pending(pending_kind::WAITING);
    t.standing.store(standing::IN_PART, Release);
    phase(at::OPERATION);
    let r = interruptible(t, call);
    phase(at::COMPLETED);
    t.standing.store(standing::IN_CALL, Release);
    if call.nr == nr::TIMERFD_SETTIME {
        unnamed::changed(e, call.fd());
    }
    r
}

/// A visible call that must not be issued twice and leaves no trace to tell: commits before and after leave a
/// window of one system call.
pub fn visible(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    visible_by(e, t, call, |t| interruptible(t, call))
}

/// The same, made by `make`.
pub fn visible_by(e: &mut Engine, t: &mut Thread, call: &Call, make: impl FnOnce(&mut Thread) -> i64) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    phase(at::OPERATION);
    let r = make(t);
    if r == err::EINTR && t.interrupted != 0 {
        return r;
    }
    e.fds.returned(r);
    t.regs.rax = r as u64;
    medium::note(e, call, r);
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}
