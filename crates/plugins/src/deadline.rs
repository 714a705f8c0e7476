//! What a component computes comes to an end: a timer of this thread's processor time, whose signal has the engine stop it at the next loop
//! or call. Waiting it cannot, so that a busy machine costs it nothing.
//!
//! The owner may have all signals blocked and read from a descriptor: this one is let through meanwhile, and one that somebody else sent
//! is put back.

use crate::engine;
use std::cell::Cell;
use std::io;
use std::mem::{zeroed, MaybeUninit};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

/// Of the signals of real time, those that hardly anybody sends; 64 is what engines are called by.
const CANDIDATES: std::ops::RangeInclusive<i32> = 50..=63;

/// The signal whose handler is ours; none could be had.
static SIGNAL: OnceLock<Option<i32>> = OnceLock::new();

thread_local! {
    static TIMER: Cell<Option<libc::timer_t>> = const { Cell::new(None) };
    /// Somebody else's signal, until it is put back.
    static OTHERS: Cell<Option<libc::siginfo_t>> = const { Cell::new(None) };
}

/// Runs `body`, in which components that run stop after so much processor time. An error: nothing was run.
pub fn within<T>(time: Duration, body: impl FnOnce() -> T) -> io::Result<T> {
    let signal = *SIGNAL.get_or_init(take_over);
    let signal = signal.ok_or_else(|| io::Error::other("no signal is free"))?;
    let (timer, mut before) = (start(signal, time)?, MaybeUninit::<libc::sigset_t>::uninit());
    // SAFETY: the kernel reads the one set and fills the other.
    unsafe {
        let mut ours: libc::sigset_t = zeroed();
        libc::sigaddset(&mut ours, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &ours, before.as_mut_ptr());
    }
    // Also when it panics.
    let _over = Over { timer, signal, before };
    Ok(body())
}

/// Stops the timer and has signals as they were.
struct Over {
    timer: libc::timer_t,
    signal: i32,
    before: MaybeUninit<libc::sigset_t>,
}

impl Drop for Over {
    fn drop(&mut self) {
        set(self.timer, Duration::ZERO);
        // SAFETY: the kernel has filled the set, and reads it.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, self.before.as_ptr(), null_mut()) };
        if let Some(info) = OTHERS.take() {
            put_back(self.signal, &info);
        }
    }
}

/// The first candidate that is nobody's.
fn take_over() -> Option<i32> {
    CANDIDATES.rev().find(|signal| {
        // SAFETY: the structures are ours, zeroes are valid in them, and the handler is one.
        unsafe {
            let mut before: libc::sigaction = zeroed();
            if libc::sigaction(*signal, std::ptr::null(), &mut before) != 0 || before.sa_sigaction != libc::SIG_DFL {
                return false;
            }
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(*signal, &action, null_mut()) == 0
        }
    })
}

/// Starts this thread's timer; after a fork there is none any more, whatever is remembered of it.
fn start(signal: i32, time: Duration) -> io::Result<libc::timer_t> {
    if let Some(timer) = TIMER.get().filter(|timer| set(*timer, time)) {
        return Ok(timer);
    }
    let mut timer: libc::timer_t = null_mut();
    // SAFETY: the structures are ours, and zeroes are valid in them.
    unsafe {
        let mut to: libc::sigevent = zeroed();
        to.sigev_notify = libc::SIGEV_THREAD_ID;
        to.sigev_signo = signal;
        to.sigev_notify_thread_id = libc::gettid();
        if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut to, &mut timer) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    TIMER.set(Some(timer));
    if set(timer, time) {
        Ok(timer)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Again and again: what a component does in its last throes may call us once more.
fn set(timer: libc::timer_t, time: Duration) -> bool {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let times = libc::itimerspec { it_interval: time, it_value: time };
    // SAFETY: a timer of this thread's; the kernel reads the structure.
    unsafe { libc::timer_settime(timer, 0, &times, null_mut()) == 0 }
}

fn put_back(signal: i32, info: &libc::siginfo_t) {
    // SAFETY: plain system call; the kernel reads the structure.
    unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info) };
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives both for the length of the call.
    let (info, context) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    if info.si_code == libc::SI_TIMER {
        if let Some(engine) = engine::made() {
            engine.increment_epoch();
        }
        return;
    }
    match OTHERS.get() {
        None => OTHERS.set(Some(*info)),
        Some(_) => {
            // Blocked from here on, and with it our own: there is no room for a third one.
            // SAFETY: the set is the context's.
            unsafe { libc::sigaddset(&mut context.uc_sigmask, signal) };
            put_back(signal, info);
        }
    }
}
