//! Signals that end a module: of the kernel where it did something wrong, of a timer where it goes on for too long.
//!
//! The owner may have all signals blocked and read from a descriptor: they are let through while a module runs, and one that
//! somebody else sent is put back.

use super::{Overrun, WayOut, RUNNING};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

/// The timer's own; by its code it can be told from a trap.
const TIMEOUT: i32 = libc::SIGTRAP;
const TRAPS: [i32; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, TIMEOUT];
const STACK: usize = 64 << 10;

struct Guard {
    way_out: WayOut,
    /// Signals whose handler is ours.
    signals: libc::sigset_t,
}

static GUARD: OnceLock<Guard> = OnceLock::new();

thread_local! {
    /// Of a thread that called [`guard`].
    static TIMER: Cell<Option<libc::timer_t>> = const { Cell::new(None) };
}

/// From now on modules that run on this thread cannot keep it, or take it down with them: `way_out` is called instead. It is called
/// from a handler of signals, may be so at any instruction, and must make system calls only. Signals that are ignored
/// or caught by others stay so. Panics of modules are not told on standard error any more.
pub fn guard(way_out: WayOut) {
    GUARD.get_or_init(|| Guard { way_out, signals: take_over() });
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if RUNNING.with(|running| running.blamed().is_none()) {
            others(panic);
        }
    }));
    // SAFETY: the structures are ours; the stack is never given back.
    unsafe {
        let stack = Box::leak(vec![0u8; STACK].into_boxed_slice());
        let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
        libc::sigaltstack(&stack, null_mut());
        let mut to: libc::sigevent = std::mem::zeroed();
        to.sigev_notify = libc::SIGEV_THREAD_ID;
        to.sigev_signo = TIMEOUT;
        to.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = null_mut();
        if libc::timer_create(libc::CLOCK_MONOTONIC, &mut to, &mut timer) == 0 {
            TIMER.set(Some(timer));
        }
    }
}

fn take_over() -> libc::sigset_t {
    // SAFETY: the structures are ours, zeroes are valid in them, and the handler is one.
    unsafe {
        let mut ours: libc::sigset_t = std::mem::zeroed();
        for signal in TRAPS {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction != libc::SIG_DFL {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal, &action, null_mut());
            libc::sigaddset(&mut ours, signal);
        }
        ours
    }
}

/// What [`end`] gives back.
pub(super) struct Watched(Option<libc::sigset_t>);

pub(super) fn begin(time: Duration) -> Watched {
    let (Some(guard), Some(timer)) = (GUARD.get(), TIMER.get()) else { return Watched(None) };
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    set(timer, time);
    // SAFETY: the kernel reads the one set and fills the other.
    unsafe {
        libc::sigprocmask(libc::SIG_UNBLOCK, &guard.signals, before.as_mut_ptr());
        Watched(Some(before.assume_init()))
    }
}

pub(super) fn end(watched: Watched) {
    let (Some(mask), Some(timer)) = (watched.0, TIMER.get()) else { return };
    set(timer, Duration::ZERO);
    // SAFETY: the kernel reads the set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &mask, null_mut()) };
}

/// Again and again: it may come while a pin is at work.
fn set(timer: libc::timer_t, time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let times = libc::itimerspec { it_interval: time, it_value: time };
    // SAFETY: a timer of this thread's; the kernel reads the structure.
    unsafe { libc::timer_settime(timer, 0, &times, null_mut()) };
}

/// Leaves this process because of a module, if there is a way out.
pub(super) fn leave(name: &'static str, why: Overrun) {
    if TIMER.get().is_some() {
        if let Some(guard) = GUARD.get() {
            (guard.way_out)(name, why);
        }
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives both for the length of the call.
    let (code, context) = unsafe { ((*info).si_code, &mut *context.cast::<libc::ucontext_t>()) };
    let is_timer = code == libc::SI_TIMER;
    let is_own = code > 0 || signal == libc::SIGABRT && code == libc::SI_TKILL;
    if let Some(name) = RUNNING.with(super::Running::blamed) {
        match (is_timer, is_own) {
            (true, _) => leave(name, Overrun::Time),
            (_, true) => leave(name, Overrun::Trap(signal)),
            _ => (),
        }
    }
    if is_timer {
        return;
    }
    // SAFETY: plain system calls; a default disposition has no handler.
    unsafe {
        if is_own {
            // Not a module's fault: what would have happened happens on return.
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &default, null_mut());
            return;
        }
        // Somebody else's, for whoever reads signals: blocked from here on, and sent again.
        libc::sigaddset(&mut context.uc_sigmask, signal);
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info);
    }
}
